// The engine Gloo: TCP between processes. Gloo has no reduce_scatter and no scatter or all_to_all with empty parts that run on
// memory of any type, so these are made of its messages.
#include "oar/distributed/engine.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/types.h>
#include <signal.h>

#include <complex>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace oar::distributed {
namespace {

using Buffer = std::unique_ptr<::gloo::transport::UnboundBuffer>;

// Slots of our own messages, beside those of Gloo's collectives.
constexpr uint64_t slot_of(uint8_t prefix, uint32_t tag) {
  return static_cast<uint64_t>(prefix) << 56 | static_cast<uint64_t>(tag) << 24;
}
constexpr uint8_t kMessages = 0x60, kReduceScatter = 0x61, kAllToAll = 0x62, kScatter = 0x63;

class StoreOfGloo final : public ::gloo::rendezvous::Store {
 public:
  StoreOfGloo(std::shared_ptr<distributed::Store> store, Milliseconds timeout)
      : store_(std::move(store)), timeout_(timeout) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_->set(key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = wait_for(key, timeout_);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const Milliseconds& timeout) override {
    for (const std::string& key : keys) wait_for(key, timeout);
  }

 private:
  std::string wait_for(const std::string& key, Milliseconds timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (Milliseconds pause{1};; pause = std::min(pause * 2, Milliseconds(50))) {
      if (std::optional<std::string> value = store_->find(key)) return *std::move(value);
      if (std::chrono::steady_clock::now() >= deadline)
        throw std::runtime_error("nobody has put '" + key + "' into the rendezvous at " +
                                 store_->describe());
      std::this_thread::sleep_for(pause);
    }
  }

  std::shared_ptr<distributed::Store> store_;
  Milliseconds timeout_;
};

// One for each address: it has the thread that moves bytes.
std::shared_ptr<::gloo::transport::Device> device_at(const std::string& host) {
  static std::mutex mutex;
  static auto& devices = *new std::map<std::string, std::shared_ptr<::gloo::transport::Device>>;
  const std::lock_guard lock(mutex);
  auto& device = devices[host];
  if (!device) {
    ::gloo::transport::tcp::attr place;
    place.hostname = host;
    device = ::gloo::transport::tcp::CreateDevice(place);
  }
  return device;
}

class Message final : public Transfer {
 public:
  Message(Buffer buffer, bool sends) : buffer_(std::move(buffer)), sends_(sends) {}
  void wait(Milliseconds timeout) override {
    const bool done = sends_ ? buffer_->waitSend(timeout) : buffer_->waitRecv(timeout);
    if (!done) throw std::runtime_error("the message was given up");
  }

 private:
  Buffer buffer_;
  bool sends_;
};

class GlooBackend final : public Backend {
 public:
  explicit GlooBackend(const BackendOptions& options) {
    auto context = std::make_shared<::gloo::rendezvous::Context>(options.rank, options.size);
    context->setTimeout(options.timeout);
    StoreOfGloo store(options.store, options.timeout);
    const char* host = std::getenv("OAR_HOST");
    auto device = device_at(host != nullptr && *host != '\0' ? host
                            : options.host.empty()           ? "127.0.0.1"
                                                             : options.host);
    context->connectFullMesh(store, device);
    context_ = std::move(context);
  }

  void broadcast(void* data, size_t bytes, int root, Milliseconds timeout) override {
    ::gloo::BroadcastOptions options(context_);
    options.setOutput(static_cast<uint8_t*>(data), bytes);
    options.setRoot(root);
    options.setTimeout(timeout);
    ::gloo::broadcast(options);
  }

  void reduce(const void* in, void* out, size_t count, const Reduction& how, int root,
              Milliseconds timeout) override {
    ::gloo::ReduceOptions options(context_);
    with_element(how.element_size, [&]<class T>(T* /*type*/) {
      options.setInput(static_cast<T*>(const_cast<void*>(in)), count);
      options.setOutput(static_cast<T*>(out), count);
    });
    options.setReduceFunction(how.combine);
    options.setRoot(root);
    options.setTimeout(timeout);
    ::gloo::reduce(options);
  }

  void all_reduce(void* data, size_t count, const Reduction& how, Milliseconds timeout) override {
    ::gloo::AllreduceOptions options(context_);
    with_element(how.element_size,
                 [&]<class T>(T* /*type*/) { options.setOutput(static_cast<T*>(data), count); });
    options.setReduceFunction(how.combine);
    options.setTimeout(timeout);
    ::gloo::allreduce(options);
  }

  void all_gather(const void* in, void* out, size_t bytes, Milliseconds timeout) override {
    ::gloo::AllgatherOptions options(context_);
    options.setInput(static_cast<uint8_t*>(const_cast<void*>(in)), bytes);
    options.setOutput(static_cast<uint8_t*>(out), bytes * ranks());
    options.setTimeout(timeout);
    ::gloo::allgather(options);
  }

  // A ring. Part i goes from rank i + 1 on around to rank i, and each rank adds its own.
  void reduce_scatter(void* in, void* out, size_t count, const Reduction& how,
                      Milliseconds timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    const int size = context_->size, rank = context_->rank;
    const size_t bytes = count * how.element_size;
    const auto own = [&](int i) {
      return part(in, static_cast<size_t>((i % size + size) % size) * bytes);
    };
    std::vector<std::byte> arrived(bytes);
    const Buffer sending = context_->createUnboundBuffer(in, bytes * ranks());
    const Buffer receiving = context_->createUnboundBuffer(arrived.data(), bytes);
    const uint64_t slot = slot_of(kReduceScatter, 0);
    for (int step = 1; step < size; ++step) {
      const std::byte* sent = own(rank - step);
      std::byte* grows = own(rank - step - 1);
      receiving->recv((rank - 1 + size) % size, slot);
      sending->send((rank + 1) % size, slot,
                    static_cast<size_t>(sent - static_cast<std::byte*>(in)), bytes);
      receiving->waitRecv(left(deadline));
      how.combine(grows, arrived.data(), grows, count);
      sending->waitSend(left(deadline));
    }
    std::memcpy(out, own(rank), bytes);
  }

  void all_to_all(const void* in, std::span<const size_t> in_bytes, void* out,
                  std::span<const size_t> out_bytes, Milliseconds timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    const uint64_t slot = slot_of(kAllToAll, 0);
    std::vector<Buffer> receiving, sending;
    size_t offset = 0;
    for (int from = 0; from < context_->size; ++from) {
      const size_t bytes = out_bytes[static_cast<size_t>(from)];
      if (bytes > 0 && from != context_->rank) {
        receiving.push_back(context_->createUnboundBuffer(part(out, offset), bytes));
        receiving.back()->recv(from, slot);
      }
      offset += bytes;
    }
    offset = 0;
    for (int to = 0; to < context_->size; ++to) {
      const size_t bytes = in_bytes[static_cast<size_t>(to)];
      if (to == context_->rank)
        std::memcpy(part(out, before(out_bytes)), part(in, offset), bytes);
      else if (bytes > 0)
        sending.push_back(message_to(to, part(in, offset), bytes, slot));
      offset += bytes;
    }
    for (const Buffer& buffer : receiving) buffer->waitRecv(left(deadline));
    for (const Buffer& buffer : sending) buffer->waitSend(left(deadline));
  }

  void gather(const void* in, void* out, size_t bytes, int root, Milliseconds timeout) override {
    ::gloo::GatherOptions options(context_);
    options.setInput(static_cast<uint8_t*>(const_cast<void*>(in)), bytes);
    if (context_->rank == root) options.setOutput(static_cast<uint8_t*>(out), bytes * ranks());
    options.setRoot(root);
    options.setTimeout(timeout);
    ::gloo::gather(options);
  }

  void scatter(const void* in, void* out, size_t bytes, int root, Milliseconds timeout) override {
    const uint64_t slot = slot_of(kScatter, 0);
    if (context_->rank != root) {
      const Buffer buffer = context_->createUnboundBuffer(out, bytes);
      buffer->recv(root, slot);
      buffer->waitRecv(timeout);
      return;
    }
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    std::vector<Buffer> sending;
    for (int to = 0; to < context_->size; ++to) {
      const std::byte* data = part(in, static_cast<size_t>(to) * bytes);
      if (to == root)
        std::memcpy(out, data, bytes);
      else
        sending.push_back(message_to(to, data, bytes, slot));
    }
    for (const Buffer& buffer : sending) buffer->waitSend(left(deadline));
  }

  void barrier(Milliseconds timeout) override {
    ::gloo::BarrierOptions options(context_);
    options.setTimeout(timeout);
    ::gloo::barrier(options);
  }

  std::unique_ptr<Transfer> send(const void* data, size_t bytes, int to, uint32_t tag) override {
    return std::make_unique<Message>(message_to(to, data, bytes, slot_of(kMessages, tag)), true);
  }

  std::unique_ptr<Transfer> receive(void* data, size_t bytes, int from, uint32_t tag) override {
    Buffer buffer = context_->createUnboundBuffer(data, bytes);
    buffer->recv(from, slot_of(kMessages, tag));
    return std::make_unique<Message>(std::move(buffer), false);
  }

  void abort() override { context_->closeConnections(); }

 private:
  size_t ranks() const { return static_cast<size_t>(context_->size); }

  // The bytes of the parts in front of this rank's.
  size_t before(std::span<const size_t> parts) const {
    size_t sum = 0;
    for (int i = 0; i < context_->rank; ++i) sum += parts[static_cast<size_t>(i)];
    return sum;
  }

  Buffer message_to(int to, const void* data, size_t bytes, uint64_t slot) {
    Buffer buffer = context_->createUnboundBuffer(const_cast<void*>(data), bytes);
    buffer->send(to, slot);
    return buffer;
  }

  static Milliseconds left(std::chrono::steady_clock::time_point deadline) {
    const auto rest =
        std::chrono::duration_cast<Milliseconds>(deadline - std::chrono::steady_clock::now());
    return std::max(rest, Milliseconds(1));  // Gloo takes 0 as "for ever"
  }

  // Gloo learns the size of an element from a type.
  template <class F>
  static void with_element(size_t bytes, F&& f) {
    switch (bytes) {
      case 1:
        return f(static_cast<uint8_t*>(nullptr));
      case 2:
        return f(static_cast<uint16_t*>(nullptr));
      case 4:
        return f(static_cast<uint32_t*>(nullptr));
      case 8:
        return f(static_cast<uint64_t*>(nullptr));
      default:
        return f(static_cast<std::complex<double>*>(nullptr));
    }
  }

  std::shared_ptr<::gloo::Context> context_;
};

// Gloo writes to a connection that the other process has closed, which by default ends this one. With the signal ignored, as
// Python has it, the write fails and the call says who is missing.
void ignore_broken_pipes() {
  struct sigaction now{};
  if (sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) signal(SIGPIPE, SIG_IGN);
}

}  // namespace
}  // namespace oar::distributed

OAR_ENGINE_API oar::distributed::Backend* oar_backend_create(
    const oar::distributed::BackendOptions& options, char** why) {
  using namespace oar::distributed;
  ignore_broken_pipes();
  return made_or_why([&]() -> Backend* { return new GlooBackend(options); }, why);
}
