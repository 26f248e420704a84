// The rendezvous over TCP. A request and its answer are frames: a length of four bytes, then fields, each with a length of its own.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "oar/base/error.h"
#include "oar/base/interrupt.h"
#include "oar/base/log.h"
#include "oar/distributed/stores.h"

namespace oar::distributed {
namespace {

constexpr std::string_view kGreeting = "oar-store-1\n";
constexpr uint32_t kLongestFrame = 64u << 20;

// ---- Frames ------------------------------------------------------------------------------------

void append_length(std::string& to, size_t length) {
  const uint32_t word = htonl(static_cast<uint32_t>(length));
  to.append(reinterpret_cast<const char*>(&word), sizeof(word));
}

void append_field(std::string& to, std::string_view field) {
  append_length(to, field.size());
  to += field;
}

// The length at the front of `bytes`, of which there are at least four.
uint32_t length_at(std::string_view bytes) {
  uint32_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof(word));
  return ntohl(word);
}

// Takes a field from the front; nothing if the frame is broken.
std::optional<std::string_view> take_field(std::string_view& frame) {
  if (frame.size() < 4) return std::nullopt;
  const uint32_t length = length_at(frame);
  if (frame.size() - 4 < length) return std::nullopt;
  const std::string_view field = frame.substr(4, length);
  frame.remove_prefix(4 + size_t{length});
  return field;
}

std::string framed(std::string_view content) {
  std::string frame;
  append_field(frame, content);
  return frame;
}

// ---- Sockets -----------------------------------------------------------------------------------

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

struct Addresses {
  addrinfo* first = nullptr;
  Addresses(const std::string& host, uint16_t port, int flags) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = flags;
    const int status = getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                   std::to_string(port).c_str(), &wanted, &first);
    user_check(
        status == 0, ErrorKind::InvalidArgument,
        "the address of the rendezvous, {}, is not known: {}.\nhint: Pass a name or an address "
        "that this machine "
        "can resolve.",
        host, gai_strerror(status));
  }
  ~Addresses() {
    if (first != nullptr) freeaddrinfo(first);
  }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;
};

void send_at_once(int descriptor) {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// ---- The server --------------------------------------------------------------------------------

struct Client {
  Socket socket;
  std::string in, out;
  bool greeted = false;
};

class Server final : public StoreServer {
 public:
  Server(const std::string& host, uint16_t port) {
    listen_at(host, port);
    int ends[2];
    user_check(pipe2(ends, O_CLOEXEC) == 0, ErrorKind::Runtime, "no pipe can be made: {}.",
               std::strerror(errno));
    wake_read_ = Socket(ends[0]);
    wake_write_ = Socket(ends[1]);
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() override {
    const char byte = 0;
    while (write(wake_write_.get(), &byte, 1) < 0 && errno == EINTR) {
    }
    thread_.join();
  }
  uint16_t port() const override { return port_; }

 private:
  void listen_at(const std::string& host, uint16_t port) {
    const Addresses addresses(host, port, AI_PASSIVE);
    std::string why = "it has no address";
    for (const addrinfo* a = addresses.first; a != nullptr && !listener_; a = a->ai_next) {
      Socket socket(::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol));
      const int on = 1;
      setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
      if (socket && bind(socket.get(), a->ai_addr, a->ai_addrlen) == 0 &&
          listen(socket.get(), SOMAXCONN) == 0)
        listener_ = std::move(socket);
      else
        why = std::strerror(errno);
    }
    user_check(
        static_cast<bool>(listener_), ErrorKind::Runtime,
        "the rendezvous cannot listen at {}:{}: {}.\nhint: Pass an address of this machine and a "
        "port that is free.",
        host, port, why);
    fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
    sockaddr_storage own{};
    socklen_t length = sizeof(own);
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&own), &length);
    port_ = ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&own)->sin6_port
                                            : reinterpret_cast<sockaddr_in*>(&own)->sin_port);
  }

  void serve() {
    for (;;) {
      std::vector<pollfd> watched{{wake_read_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Client& client : clients_) {
        const bool writes = !client.out.empty();
        watched.push_back(
            {client.socket.get(), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0});
      }
      if (poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
      if (watched[0].revents != 0) return;
      for (size_t i = clients_.size(); i-- > 0;)
        if (watched[i + 2].revents != 0 && !talk(clients_[i]))
          clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i));
      if (watched[1].revents != 0) accept_clients();
    }
  }

  void accept_clients() {
    for (;;) {
      Socket socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) return;
      send_at_once(socket.get());
      clients_.push_back({std::move(socket), {}, {}, false});
    }
  }

  // Reads and writes what is possible; false if the connection has ended.
  bool talk(Client& client) {
    char block[16384];
    for (;;) {
      const ssize_t count = recv(client.socket.get(), block, sizeof(block), 0);
      if (count == 0) return false;
      if (count < 0) {
        if (errno == EAGAIN || errno == EINTR) break;
        return false;
      }
      client.in.append(block, static_cast<size_t>(count));
      if (!answer_all(client)) return false;
    }
    while (!client.out.empty()) {
      const ssize_t count =
          ::send(client.socket.get(), client.out.data(), client.out.size(), MSG_NOSIGNAL);
      if (count < 0) return errno == EAGAIN || errno == EINTR;
      client.out.erase(0, static_cast<size_t>(count));
    }
    return true;
  }

  // False if what comes is no request of ours.
  bool answer_all(Client& client) {
    if (!client.greeted) {
      if (client.in.size() < kGreeting.size()) return kGreeting.starts_with(client.in);
      if (!client.in.starts_with(kGreeting)) return false;
      client.in.erase(0, kGreeting.size());
      client.greeted = true;
    }
    std::string_view rest = client.in;
    while (rest.size() >= 4) {
      if (length_at(rest) > kLongestFrame) return false;
      const std::optional<std::string_view> request = take_field(rest);
      if (!request) break;
      const std::optional<std::string> reply = answer(*request);
      if (!reply) return false;
      client.out += framed(*reply);
    }
    client.in.erase(0, client.in.size() - rest.size());
    return true;
  }

  std::optional<std::string> answer(std::string_view request) {
    if (request.empty()) return std::nullopt;
    const char what = request[0];
    request.remove_prefix(1);
    const std::optional<std::string_view> key = take_field(request);
    if (!key) return std::nullopt;
    const std::string name(*key);
    const auto found = values_.find(name);
    if (what == 'f') return found == values_.end() ? "n" : "y" + found->second;
    if (what == 'r') {
      values_.erase(name);
      return "y";
    }
    const std::optional<std::string_view> value = take_field(request);
    if (!value) return std::nullopt;
    if (what == 's') {
      values_[name] = *value;
      return "y";
    }
    if (what != 'a') return std::nullopt;
    const int64_t old =
        found == values_.end() ? 0 : std::strtoll(found->second.c_str(), nullptr, 10);
    const std::string sum =
        std::to_string(old + std::strtoll(std::string(*value).c_str(), nullptr, 10));
    values_[name] = sum;
    return "y" + sum;
  }

  Socket listener_, wake_read_, wake_write_;
  uint16_t port_ = 0;
  std::vector<Client> clients_;
  std::map<std::string, std::string> values_;
  std::thread thread_;
};

// ---- A client ----------------------------------------------------------------------------------

class TcpStore final : public Store {
 public:
  TcpStore(std::string host, uint16_t port, Milliseconds timeout)
      : host_(std::move(host)), port_(port) {
    connect_within(timeout);
  }

  void set(const std::string& key, const std::string& value) override {
    std::string request = "s";
    append_field(request, key);
    append_field(request, value);
    ask(request);
  }
  std::optional<std::string> find(const std::string& key) override {
    std::string request = "f";
    append_field(request, key);
    const std::string reply = ask(request);
    if (reply[0] != 'y') return std::nullopt;
    return reply.substr(1);
  }
  int64_t add(const std::string& key, int64_t amount) override {
    std::string request = "a";
    append_field(request, key);
    append_field(request, std::to_string(amount));
    return std::strtoll(ask(request).c_str() + 1, nullptr, 10);
  }
  void remove(const std::string& key) override {
    std::string request = "r";
    append_field(request, key);
    ask(request);
  }
  std::string describe() const override { return "tcp://" + host_ + ":" + std::to_string(port_); }

  std::string own_address() override {
    sockaddr_storage own{};
    socklen_t length = sizeof(own);
    if (getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) return {};
    char text[NI_MAXHOST];
    if (getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text, sizeof(text), nullptr, 0,
                    NI_NUMERICHOST) != 0)
      return {};
    const std::string address = text;
    return address.starts_with("::ffff:") ? address.substr(7) : address;
  }

 private:
  void connect_within(Milliseconds timeout) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (;;) {
      std::string why;
      if (try_to_connect(why)) break;
      user_check(
          std::chrono::steady_clock::now() < deadline, ErrorKind::Runtime,
          "nobody answers at {} for {} ms: {}.\nhint: Start the process with the number 0 or the "
          "launcher there, and "
          "check the address and the firewall.",
          describe(), timeout.count(), why);
      poll_interrupt();
      std::this_thread::sleep_for(Milliseconds(50));
    }
  }

  bool try_to_connect(std::string& why) {
    const Addresses addresses(host_, port_, 0);
    for (const addrinfo* a = addresses.first; a != nullptr; a = a->ai_next) {
      Socket socket(::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol));
      if (socket && ::connect(socket.get(), a->ai_addr, a->ai_addrlen) == 0) {
        send_at_once(socket.get());
        // A server that hangs must not hang us: an answer takes microseconds.
        const timeval patience{30, 0};
        setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
        socket_ = std::move(socket);
        send_all(kGreeting);
        return true;
      }
      why = std::strerror(errno);
    }
    return false;
  }

  std::string ask(const std::string& request) {
    const std::lock_guard lock(mutex_);
    send_all(framed(request));
    std::string length = receive_exactly(4);
    const uint32_t size = length_at(length);
    if (size == 0 || size > kLongestFrame) lose("its answer is broken");
    return receive_exactly(size);
  }

  void send_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) lose(std::strerror(errno));
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }

  std::string receive_exactly(size_t length) {
    std::string bytes(length, '\0');
    for (size_t done = 0; done < length;) {
      const ssize_t count = recv(socket_.get(), bytes.data() + done, length - done, 0);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) lose(count == 0 ? "it has closed the connection" : std::strerror(errno));
      done += static_cast<size_t>(count);
    }
    return bytes;
  }

  [[noreturn]] void lose(const char* why) const {
    fail(
        ErrorKind::Runtime,
        "the rendezvous at {} does not answer any more: {}.\nhint: The launcher or the process with the "
        "number 0 "
        "has ended; look at its log.",
        describe(), why);
  }

  std::string host_;
  uint16_t port_;
  std::mutex mutex_;
  Socket socket_;
};

}  // namespace

std::shared_ptr<Store> tcp_store(const std::string& host, uint16_t port, Milliseconds timeout) {
  return std::make_shared<TcpStore>(host, port, timeout);
}

std::unique_ptr<StoreServer> serve_store(const std::string& host, uint16_t port) {
  return std::make_unique<Server>(host, port);
}

}  // namespace oar::distributed
