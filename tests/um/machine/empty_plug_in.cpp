// A plug-in without anything but its build.
extern "C" {

[[gnu::visibility("default")]] const char* empty_plug_in_build() {
  return "the build of the tests";
}

}  // extern "C"
