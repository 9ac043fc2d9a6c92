#pragma once

namespace spillway::um {

/// Gives the calling thread a stack of its own for page-fault handlers, until it ends; a second
/// call does nothing. Without it a handler runs on the stack of the code that touched, and some
/// code has none to spare: oneDNN's AVX-512 kernels use the stack pointer for other things.
/// A handler that needs more than it holds ends the process. Throws: Error when the system gives no
/// such stack.
void make_fault_stack();

}  // namespace spillway::um
