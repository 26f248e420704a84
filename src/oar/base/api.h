// What the libraries export. Everything else is hidden, so that the compiler may inline it and the linker may remove it.
//
//   namespace OAR_API oar {          interface of the full library, hidden in the runtime library
//   namespace OAR_RUNTIME_API oar {  interface of both
//
// A header without either is private to the library: kernels, rules of op families.
#pragma once

#include <cstdint>  // defines __GLIBC__

#define OAR_RUNTIME_API [[gnu::visibility("default")]]

#if defined(OAR_DEPLOY)
#define OAR_API
#else
#define OAR_API OAR_RUNTIME_API
#endif

// For thread-local variables that every call reads: an access is a plain load, also in a shared library. Only glibc loads such a
// library at run time.
#if defined(__GLIBC__)
#define OAR_FAST_TLS [[gnu::tls_model("initial-exec")]]
#else
#define OAR_FAST_TLS
#endif
