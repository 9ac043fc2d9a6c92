# Writes text files into a C++ source as string views.
# Run: cmake -DOUT=assets.cpp -DHEADER=path/assets.h -DNAMESPACE=a::b "-DTEXTS=kName=file;…" -P …
# A name may stand there several times: its files are joined, in order.
cmake_minimum_required(VERSION 3.25)
set(names "")
foreach(entry IN LISTS TEXTS)
  string(REGEX MATCH "^([^=]+)=(.+)$" matched "${entry}")
  set(name ${CMAKE_MATCH_1})
  file(READ "${CMAKE_MATCH_2}" text)
  list(APPEND names ${name})
  string(APPEND text_${name} "R\"~~~~(${text})~~~~\"\n")
endforeach()
list(REMOVE_DUPLICATES names)
set(source "// Made by tools/cmake/embed_text.cmake.\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n")
foreach(name IN LISTS names)
  string(APPEND source "const std::string_view ${name} =\n${text_${name}};\n")
endforeach()
string(APPEND source "}\n")
file(WRITE "${OUT}" "${source}")
