// The libraries that decode images. They are loaded when first used, not linked: a program that reads no images pays nothing,
// and a machine without them still runs.
#pragma once

namespace oar::media {

// A library that was loaded, or an error that says what to install. `hint` names the package.
class CodecLibrary {
 public:
  CodecLibrary(const char* file, const char* hint);
  template <class F>
  void find(F*& function, const char* name) const {
    function = reinterpret_cast<F*>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;

  const char* file_;
  const char* hint_;
  void* handle_;
};

[[noreturn]] void fail_without_library(const char* format, const char* package);

}  // namespace oar::media
