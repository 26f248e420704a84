#include "oar/parameter_server/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "oar/base/error.h"
#include "oar/parameter_server/records.h"

namespace oar::parameter_server {
namespace {

// A new file is there after a crash only if its folder is synced.
void sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file == -1) return;
  ::fsync(file);
  ::close(file);
}

}  // namespace

Log::Log(std::string path, uint64_t size) : path_(std::move(path)), size_(size), synced_(size) {
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file_ == -1) fail("cannot be opened");
  if (::ftruncate(file_, static_cast<off_t>(size)) == -1) fail("cannot be cut");
  if (::lseek(file_, 0, SEEK_END) == -1) fail("cannot be read");
  sync_folder_of(path_);
}

Log::~Log() {
  if (file_ != -1) ::close(file_);
}

void Log::fail(const char* what) {
  failure_ = format("the log {} {}: {}", path_, what, std::strerror(errno));
  synced_more_.notify_all();
  throw Error(ErrorKind::Runtime, failure_, "Free the disk, then start the server again.");
}

// After a failure nobody knows what is on the disk.
void Log::check_usable() const {
  if (!failure_.empty()) {
    throw Error(ErrorKind::Runtime, failure_, "Free the disk, then start the server again.");
  }
}

uint64_t Log::append(const std::string& content) {
  const std::string record = record_head(content) + content;
  const std::lock_guard lock(mutex_);
  check_usable();
  for (size_t done = 0; done < record.size();) {
    const ssize_t written = ::write(file_, record.data() + done, record.size() - done);
    if (written == -1 && errno == EINTR) continue;
    if (written == -1) fail("cannot be written");
    done += static_cast<size_t>(written);
  }
  return size_ += record.size();
}

void Log::sync(uint64_t size) {
  std::unique_lock lock(mutex_);
  while (synced_ < size) {
    check_usable();
    if (syncing_) {
      synced_more_.wait(lock);
      continue;
    }
    syncing_ = true;
    const uint64_t reached = size_;
    lock.unlock();
    const int status = ::fdatasync(file_);
    lock.lock();
    syncing_ = false;
    if (status == -1) fail("cannot be synced");
    synced_ = reached;
    synced_more_.notify_all();
  }
}

uint64_t Log::size() const {
  const std::lock_guard lock(mutex_);
  return size_;
}

}  // namespace oar::parameter_server
