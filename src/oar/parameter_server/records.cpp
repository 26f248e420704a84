#include "oar/parameter_server/records.h"

#include <cstring>
#include <filesystem>

#include "oar/base/crc32c.h"
#include "oar/base/error.h"

namespace oar::parameter_server {

std::string record_head(std::string_view content) {
  const auto length = static_cast<uint32_t>(content.size());
  const uint32_t sum = crc32c(content);
  std::string head(kRecordHead, '\0');
  std::memcpy(head.data(), &length, sizeof length);
  std::memcpy(head.data() + sizeof length, &sum, sizeof sum);
  return head;
}

RecordReader::RecordReader(std::string path)
    : path_(std::move(path)), file_(path_, std::ios::binary) {
  user_check(file_.is_open(), ErrorKind::NotFound,
             "the file {} cannot be read.\nhint: Check the path and the permissions.", path_);
  size_ = std::filesystem::file_size(path_);
}

bool RecordReader::only_zeros_follow() {
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(offset_));
  char c = 0;
  while (file_.get(c)) {
    if (c != 0) return false;
  }
  return true;
}

RecordReader::Found RecordReader::next(std::string* content) {
  if (offset_ == size_) return Found::End;
  if (size_ - offset_ < kRecordHead) return Found::Torn;
  uint32_t length = 0, sum = 0;
  file_.read(reinterpret_cast<char*>(&length), sizeof length);
  file_.read(reinterpret_cast<char*>(&sum), sizeof sum);
  const uint64_t left = size_ - offset_ - kRecordHead;
  if (length > left) return Found::Torn;
  content->resize(length);
  file_.read(content->data(), length);
  const bool whole = file_.good() && length > 0 && crc32c(*content) == sum;
  if (whole) {
    offset_ += kRecordHead + length;
    return Found::Record;
  }
  if (length == left || only_zeros_follow()) return Found::Torn;
  throw Error(ErrorKind::Runtime,
              format("the file {} is damaged: the record at byte {} does not match its checksum.",
                     path_, offset_),
              "Restore the file from a copy.");
}

}  // namespace oar::parameter_server
