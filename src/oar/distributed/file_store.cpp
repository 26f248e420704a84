// A folder with a file for each value. A value is written beside its place and renamed, so that it is seen whole or not at all.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "oar/base/error.h"
#include "oar/distributed/stores.h"

namespace oar::distributed {
namespace {

namespace fs = std::filesystem;

// Keys have any characters.
std::string file_name(const std::string& key) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string name = "v_";
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '.' || c == '-';
    if (plain) {
      name += c;
    } else {
      name += '_';
      name += kDigits[byte >> 4];
      name += kDigits[byte & 15];
    }
  }
  return name;
}

class FileStore final : public Store {
 public:
  explicit FileStore(const std::string& folder) : folder_(folder) {
    std::error_code error;
    fs::create_directories(folder_, error);
    user_check(fs::is_directory(folder_), ErrorKind::InvalidArgument,
               "the folder {} of the rendezvous cannot be made: {}.\nhint: Name a folder that all "
               "processes may write.",
               folder, error.message());
  }

  void set(const std::string& key, const std::string& value) override {
    const fs::path target = folder_ / file_name(key);
    fs::path draft = target;
    draft += ".draft" + std::to_string(getpid()) + "_" + std::to_string(drafts_++);
    {
      std::ofstream file(draft, std::ios::binary);
      file.write(value.data(), static_cast<std::streamsize>(value.size()));
      file.close();
      if (!file) refuse("written");
    }
    std::error_code error;
    fs::rename(draft, target, error);
    if (error) refuse("written");
  }

  std::optional<std::string> find(const std::string& key) override {
    std::ifstream file(folder_ / file_name(key), std::ios::binary);
    if (!file) return std::nullopt;
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  int64_t add(const std::string& key, int64_t amount) override {
    const fs::path lock = folder_ / "lock";
    const int descriptor = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0 || flock(descriptor, LOCK_EX) != 0) {
      if (descriptor >= 0) close(descriptor);
      refuse("locked");
    }
    const std::optional<std::string> old = find(key);
    const int64_t sum = (old ? std::stoll(*old) : 0) + amount;
    set(key, std::to_string(sum));
    close(descriptor);
    return sum;
  }

  void remove(const std::string& key) override {
    std::error_code ignored;
    fs::remove(folder_ / file_name(key), ignored);
  }

  std::string describe() const override { return "file://" + folder_.string(); }

 private:
  [[noreturn]] void refuse(const char* what) const {
    fail(ErrorKind::Runtime,
         "the rendezvous {} cannot be {}: {}.\nhint: Check the disk and its rights.", describe(),
         what, std::strerror(errno));
  }

  fs::path folder_;
  std::atomic<int> drafts_ = 0;
};

}  // namespace

std::shared_ptr<Store> file_store(const std::string& folder) {
  return std::make_shared<FileStore>(folder);
}

}  // namespace oar::distributed
