#include "oar/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <utility>

#include "oar/base/error.h"
#include "oar/base/scope_guard.h"

namespace oar {

namespace {

[[noreturn]] void fail_on(std::string_view what, const std::string& path, int code) {
  fail(code == ENOENT ? ErrorKind::NotFound : ErrorKind::Runtime, "Cannot {} \"{}\": {}.", what,
       path, std::generic_category().message(code));
}

// Repeats a call that a signal interrupted.
template <class F>
auto retry(F call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result == -1 && errno == EINTR);
  return result;
}

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// A rename would replace a symbolic link by a file, but users who link files mean the target.
std::string follow_links(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr),
                                                             &std::free);
  return resolved == nullptr ? path : std::string(resolved.get());
}

void sync_directory(const std::string& directory) {
  const int fd =
      retry([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (fd == -1) {
    fail_on("open the directory", directory, errno);
  }
  const ScopeGuard close_it([&] { ::close(fd); });
  // Some file systems cannot sync a directory and report an error; the rename has still happened.
  if (retry([&] { return ::fsync(fd); }) == -1 && errno != EINVAL && errno != ENOTSUP) {
    fail_on("flush the directory", directory, errno);
  }
}

}  // namespace

std::string read_file(const std::string& path) {
  const int fd = retry([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (fd == -1) {
    fail_on("open", path, errno);
  }
  const ScopeGuard close_it([&] { ::close(fd); });
  struct stat info{};
  if (::fstat(fd, &info) == -1) {
    fail_on("read", path, errno);
  }
  // The size is only a guess: files in /proc report 0, and others may grow while they are read.
  constexpr std::size_t kPiece = 1 << 16;
  std::string content(static_cast<std::size_t>(info.st_size) + 1, '\0');
  std::size_t length = 0;
  for (;;) {
    if (length == content.size()) {
      content.resize(content.size() + std::max(kPiece, content.size() / 2));
    }
    const auto got =
        retry([&] { return ::read(fd, content.data() + length, content.size() - length); });
    if (got == -1) {
      fail_on("read", path, errno);
    }
    if (got == 0) {
      break;
    }
    length += static_cast<std::size_t>(got);
  }
  content.resize(length);
  return content;
}

void write_file_atomic(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content.data(), content.size());
  file.commit();
}

std::string cache_folder() {
  if (const char* const chosen = std::getenv("OAR_CACHE_DIR"); chosen && *chosen != 0)
    return chosen;
  const char* const home = std::getenv("HOME");
  return home && *home != 0 ? format("{}/.cache/oar", home) : std::string();
}

AtomicFile::AtomicFile(const std::string& path, unsigned mode) : path_(follow_links(path)) {
  // In the same directory, since a rename does not cross file systems.
  static std::atomic<unsigned> counter{0};
  do {
    temporary_ = oar::format("{}.tmp.{}.{}", path_, ::getpid(), counter.fetch_add(1));
    fd_ = retry(
        [&] { return ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode); });
  } while (fd_ == -1 && errno == EEXIST);
  if (fd_ == -1) {
    fail_on("create a file next to", path_, errno);
  }
  struct stat info{};
  if (::stat(path_.c_str(), &info) == 0) {
    // Keeps the permissions of the file it replaces, as far as the system allows.
    [[maybe_unused]] const int ignored = ::fchmod(fd_, info.st_mode & 07777);
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ != -1) {
    ::close(fd_);
  }
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
  }
}

void AtomicFile::write(const void* data, std::size_t size) {
  internal_check(fd_ != -1, "\"{}\" is written to after it was committed.", path_);
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const auto written = retry([&] { return ::write(fd_, next, size); });
    if (written == -1) {
      fail_on("write", path_, errno);
    }
    next += written;
    size -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit() {
  internal_check(fd_ != -1, "\"{}\" is committed twice.", path_);
  // Content before name: else a crash could leave the new name on an empty file.
  if (retry([&] { return ::fsync(fd_); }) == -1) {
    fail_on("flush", path_, errno);
  }
  if (::close(std::exchange(fd_, -1)) == -1 && errno != EINTR) {
    fail_on("close", path_, errno);
  }
  if (::rename(temporary_.c_str(), path_.c_str()) == -1) {
    fail_on("replace", path_, errno);
  }
  temporary_.clear();
  sync_directory(directory_of(path_));
}

}  // namespace oar
