#include "oar/compiler/fusion/kernel_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/format.h"
#include "oar/base/log.h"
#include "oar/base/scope_guard.h"
#include "oar/formats/checksum.h"

namespace oar::fusion {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "oar kernel 1\n";
constexpr std::string_view kSuffix = ".kernel";
constexpr size_t kHexSize = 64;
constexpr int64_t kLargestEntry = 64 << 20;

// A file is its magic, the checksum of the rest, the length of the key, the key and the code.
std::string entry_of(const std::string& key, std::string_view object) {
  std::string rest = format("\n{}\n{}", key.size(), key);
  rest += object;
  return std::string(kMagic) + sha256(rest) + rest;
}

std::optional<std::string> object_in(std::string_view entry, const std::string& key) {
  if (entry.size() < kMagic.size() + kHexSize || !entry.starts_with(kMagic)) return std::nullopt;
  const std::string_view sum = entry.substr(kMagic.size(), kHexSize);
  const std::string_view rest = entry.substr(kMagic.size() + kHexSize);
  const std::string wanted = format("\n{}\n{}", key.size(), key);
  if (!rest.starts_with(wanted) || sha256(rest) != sum) return std::nullopt;
  return std::string(rest.substr(wanted.size()));
}

bool is_private(const struct stat& info) {
  return info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::string make_private_folder(const std::string& folder) {
  std::error_code code;
  fs::create_directories(fs::path(folder).parent_path(), code);
  if (::mkdir(folder.c_str(), 0700) == -1 && errno != EEXIST)
    return format("'{}' cannot be made: {}", folder, std::generic_category().message(errno));
  struct stat info{};
  if (::lstat(folder.c_str(), &info) == -1 || !S_ISDIR(info.st_mode))
    return format("'{}' is not a folder", folder);
  if (!is_private(info))
    return format("'{}' belongs to another user, or others may write to it", folder);
  return {};
}

// The content of a file that only this user can have written.
std::optional<std::string> read_own(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd == -1) return std::nullopt;
  const ScopeGuard close_it([&] { ::close(fd); });
  struct stat info{};
  if (::fstat(fd, &info) == -1 || !S_ISREG(info.st_mode) || !is_private(info) ||
      info.st_size > kLargestEntry)
    return std::nullopt;
  std::string content(static_cast<size_t>(info.st_size), '\0');
  size_t length = 0;
  while (length < content.size()) {
    const ssize_t got = ::read(fd, content.data() + length, content.size() - length);
    if (got == -1 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    length += static_cast<size_t>(got);
  }
  return content;
}

struct Entry {
  fs::path path;
  fs::file_time_type used;
  int64_t bytes;
};

// Is it a file that a process still writes? What a killed process left is older.
bool is_being_written(const fs::path& path, fs::file_time_type used) {
  return path.extension() != kSuffix &&
         used > fs::file_time_type::clock::now() - std::chrono::hours(1);
}

// Files of this cache, those that a killed process left half written too.
std::vector<Entry> entries_in(const std::string& folder) {
  std::vector<Entry> made;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    const fs::path& path = at->path();
    if (path.filename().string().find(kSuffix) == std::string::npos) continue;
    std::error_code gone;
    const auto bytes = static_cast<int64_t>(fs::file_size(path, gone));
    const fs::file_time_type used = fs::last_write_time(path, gone);
    if (!gone && !is_being_written(path, used)) made.push_back({path, used, bytes});
  }
  return made;
}

int64_t total(const std::vector<Entry>& entries) {
  int64_t sum = 0;
  for (const Entry& entry : entries) sum += entry.bytes;
  return sum;
}

}  // namespace

KernelCache::KernelCache(std::string folder, int64_t most_bytes)
    : folder_(std::move(folder)), most_bytes_(most_bytes) {
  refused_ = folder_.empty() ? "there is no home folder" : make_private_folder(folder_);
}

std::string KernelCache::path_of(const std::string& key) const {
  return format("{}/{}{}", folder_, sha256(key), kSuffix);
}

std::optional<std::string> KernelCache::find(const std::string& key) try {
  if (!refused_.empty()) return std::nullopt;
  const std::string path = path_of(key);
  const std::optional<std::string> entry = read_own(path);
  if (!entry) return std::nullopt;
  std::optional<std::string> object = object_in(*entry, key);
  // The time tells which entries are in use. Entries of no use go.
  if (object)
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  else
    ::unlink(path.c_str());
  return object;
} catch (const std::exception&) {
  return std::nullopt;
}

void KernelCache::keep(const std::string& key, std::string_view object) try {
  if (!refused_.empty()) return;
  const std::string entry = entry_of(key, object);
  const auto bytes = static_cast<int64_t>(entry.size());
  if (bytes > std::min(most_bytes_, kLargestEntry)) return;
  make_room(bytes);
  AtomicFile file(path_of(key), 0600);
  file.write(entry.data(), entry.size());
  file.commit();
} catch (const std::exception& error) {
  refused_ = error.what();  // a full disk, a folder without write access: not asked again
  log_at(LogLevel::Info, "Compiled kernels are not kept on disk: {}", refused_);
}

void KernelCache::make_room(int64_t bytes) {
  if (bytes_ < 0) bytes_ = total(entries_in(folder_));
  bytes_ += bytes;
  if (bytes_ <= most_bytes_) return;
  // Others may have removed some, or added some.
  std::vector<Entry> entries = entries_in(folder_);
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  bytes_ = total(entries) + bytes;
  for (const Entry& entry : entries) {
    if (bytes_ <= most_bytes_ / 4 * 3) break;
    std::error_code gone;
    fs::remove(entry.path, gone);
    bytes_ -= entry.bytes;
  }
}

KernelCache::Size KernelCache::size() const {
  const std::vector<Entry> entries = entries_in(folder_);
  return {static_cast<int64_t>(entries.size()), total(entries)};
}

}  // namespace oar::fusion
