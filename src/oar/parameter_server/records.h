// Files of records: each has its length and its checksum before its bytes. Logs, checkpoints and saved tables are such files.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace oar::parameter_server {

constexpr size_t kRecordHead = 2 * sizeof(uint32_t);
constexpr uint32_t kMostRecordBytes = 1 << 30;

// The head of a record.
std::string record_head(std::string_view content);

class RecordReader {
 public:
  explicit RecordReader(std::string path);

  enum class Found : uint8_t { Record, End, Torn };
  // Torn: the file ends within a record, or the last one was not written as a whole. A record that is damaged with others behind
  // it is an Error.
  Found next(std::string* content);
  // Where the last whole record ends.
  uint64_t offset() const { return offset_; }

 private:
  bool only_zeros_follow();

  std::string path_;
  std::ifstream file_;
  uint64_t size_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace oar::parameter_server
