// The write-ahead log: a change is in the log, on the disk, before it is applied and acknowledged.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

namespace oar::parameter_server {

class Log {
 public:
  // Continues the file, whose records up to `size` are whole; what follows is cut off.
  Log(std::string path, uint64_t size);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Returns the file's size with the record. The order of calls is that of the records.
  uint64_t append(const std::string& content);
  // Returns when the file is on the disk up to this size. One sync serves all threads that wait.
  void sync(uint64_t size);
  uint64_t size() const;

 private:
  [[noreturn]] void fail(const char* what);
  void check_usable() const;

  std::string path_;
  int file_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable synced_more_;
  uint64_t size_ = 0, synced_ = 0;
  bool syncing_ = false;
  std::string failure_;
};

}  // namespace oar::parameter_server
