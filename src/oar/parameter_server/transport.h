// How requests travel. gRPC is behind this interface: its headers are slow to compile.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "oar/parameter_server/options.h"

namespace oar::parameter_server {

namespace wire {
class Request;
class Reply;
}  // namespace wire

class Listener {
 public:
  virtual ~Listener() = default;  // ends the calls that run
  virtual int port() const = 0;
};

// Answers a request, or throws an Error. Called by several threads.
using Answer = std::function<void(const wire::Request& request, wire::Reply* reply)>;

std::unique_ptr<Listener> listen(const std::string& address, const std::string& token,
                                 uint64_t most_message_bytes, Answer answer);

struct Outcome {
  enum class Kind : uint8_t { Answered, Refused, Unreachable };
  Kind kind = Kind::Answered;
  std::string why;
};

class Connection {
 public:
  virtual ~Connection() = default;
  virtual Outcome call(const wire::Request& request, wire::Reply* reply, Milliseconds timeout) = 0;
};

std::unique_ptr<Connection> connect_to(const std::string& address, const std::string& token);

}  // namespace oar::parameter_server
