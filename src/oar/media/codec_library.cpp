#include "oar/media/codec_library.h"

#include <dlfcn.h>

#include "oar/base/error.h"

namespace oar::media {
namespace {

// Another version of the library may be in the process, with the same names of functions: its own come first. The address
// sanitizer does not allow this.
#if defined(RTLD_DEEPBIND) && !defined(__SANITIZE_ADDRESS__)
constexpr int kOwnNamesFirst = RTLD_DEEPBIND;
#else
constexpr int kOwnNamesFirst = 0;
#endif

}  // namespace

CodecLibrary::CodecLibrary(const char* file, const char* hint)
    // The run path of this library leads to a copy next to it, if there is one.
    : file_(file), hint_(hint), handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL | kOwnNamesFirst)) {
  user_check(handle_ != nullptr, ErrorKind::Unsupported,
             "{} is needed to read this image, and cannot be loaded.\nhint: {}", file, hint);
}

void* CodecLibrary::symbol(const char* name) const {
  void* found = dlsym(handle_, name);
  user_check(found != nullptr, ErrorKind::Unsupported, "{} has no function {}.\nhint: {}", file_,
             name, hint_);
  return found;
}

void fail_without_library(const char* format, const char* package) {
  fail(ErrorKind::Unsupported,
       "this build of Oar reads no {} files: the headers were missing when it was compiled.\nhint: "
       "`apt-get install {}` and build again, or install Pillow.",
       format, package);
}

}  // namespace oar::media
