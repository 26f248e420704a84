#include "oar/distributed/store.h"

#include <algorithm>
#include <charconv>
#include <thread>
#include <utility>

#include "oar/base/error.h"
#include "oar/base/interrupt.h"
#include "oar/distributed/stores.h"

namespace oar::distributed {
namespace {

class PartOfStore final : public Store {
 public:
  PartOfStore(std::shared_ptr<Store> store, std::string prefix)
      : store_(std::move(store)), prefix_(std::move(prefix)) {}
  void set(const std::string& key, const std::string& value) override {
    store_->set(prefix_ + key, value);
  }
  std::optional<std::string> find(const std::string& key) override {
    return store_->find(prefix_ + key);
  }
  int64_t add(const std::string& key, int64_t amount) override {
    return store_->add(prefix_ + key, amount);
  }
  void remove(const std::string& key) override { store_->remove(prefix_ + key); }
  std::string own_address() override { return store_->own_address(); }
  std::string describe() const override { return store_->describe(); }

 private:
  std::shared_ptr<Store> store_;
  std::string prefix_;
};

constexpr std::string_view kFile = "file://", kTcp = "tcp://";

[[noreturn]] void fail_address(const std::string& address) {
  fail(ErrorKind::InvalidArgument,
       "'{}' is no address of a rendezvous.\nhint: Pass tcp://host:port, or file:// with a folder "
       "that all "
       "processes see.",
       address);
}

}  // namespace

std::string Store::get(const std::string& key, Milliseconds timeout) {
  constexpr Milliseconds kLongest{50};
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (Milliseconds pause{1};; pause = std::min(pause * 2, kLongest)) {
    if (std::optional<std::string> value = find(key)) return *std::move(value);
    user_check(std::chrono::steady_clock::now() < deadline, ErrorKind::Runtime,
               "nobody has put '{}' into the rendezvous at {} for {} ms.\nhint: Check that all "
               "processes were "
               "started with this address, and look at the logs of those that have ended.",
               key, describe(), timeout.count());
    poll_interrupt();
    std::this_thread::sleep_for(pause);
  }
}

std::shared_ptr<Store> part_of(std::shared_ptr<Store> store, std::string prefix) {
  return std::make_shared<PartOfStore>(std::move(store), std::move(prefix));
}

std::shared_ptr<Store> open_store(const std::string& address, Milliseconds timeout) {
  if (address.starts_with(kFile)) return file_store(address.substr(kFile.size()));
  if (!address.starts_with(kTcp)) fail_address(address);
  const std::string place = address.substr(kTcp.size());
  const size_t colon = place.rfind(':');
  if (colon == std::string::npos) fail_address(address);
  uint16_t port = 0;
  const char *begin = place.data() + colon + 1, *end = place.data() + place.size();
  const std::from_chars_result parsed = std::from_chars(begin, end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end || port == 0) fail_address(address);
  return tcp_store(place.substr(0, colon), port, timeout);
}

}  // namespace oar::distributed
