// Whole files. Errors name the path and what the system said about it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "oar/base/api.h"

namespace OAR_API oar {

std::string read_file(const std::string& path);

// Where files are that can be made again: OAR_CACHE_DIR, else ~/.cache/oar. Empty without a home.
std::string cache_folder();

// Replaces the file as a whole: after a crash at any moment it is the old one or the new one.
void write_file_atomic(const std::string& path, std::string_view content);

// The same for content that comes in pieces. Without a commit nothing changes.
class AtomicFile {
 public:
  // The mode is that of a new file, before the user's mask.
  explicit AtomicFile(const std::string& path, unsigned mode = 0666);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t size);
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  int fd_ = -1;
};

}  // namespace oar
