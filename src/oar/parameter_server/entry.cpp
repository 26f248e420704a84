#include "oar/base/error.h"
#include "oar/parameter_server/core.h"
#include "oar/parameter_server/library_entry.h"
#include "oar/parameter_server/transport.h"
#include "oar/parameter_server/wire.pb.h"

namespace oar::parameter_server {
namespace {

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address.starts_with("localhost:") ||
         address.starts_with("[::1]:");
}

class GrpcServer final : public Server {
 public:
  explicit GrpcServer(const ServerOptions& options) : core_(options) {
    user_check(
        !options.token.empty(), ErrorKind::InvalidArgument,
        "a server needs a token, which its clients must know.\nhint: Set OAR_PS_TOKEN to the "
        "same secret for all processes.");
    user_check(is_loopback(options.address) || options.token.size() >= 16,
               ErrorKind::InvalidArgument,
               "a server that others can reach, at {}, needs a token of at least 16 "
               "characters.\nhint: Set OAR_PS_TOKEN to a long secret.",
               options.address);
    listener_ = listen(
        options.address, options.token, options.most_message_bytes,
        [this](const wire::Request& request, wire::Reply* reply) { core_.handle(request, reply); });
  }
  int port() const override { return listener_->port(); }
  bool wait(Milliseconds time) override { return core_.wait(time); }
  void checkpoint() override { core_.checkpoint(); }
  void load(const std::string& folder) override { core_.load("", folder); }

 private:
  Core core_;
  std::unique_ptr<Listener> listener_;  // ends before the core
};

std::unique_ptr<Server> serve_with_grpc(const ServerOptions& options) {
  return std::make_unique<GrpcServer>(options);
}

}  // namespace
}  // namespace oar::parameter_server

extern "C" [[gnu::visibility("default")]] const oar::parameter_server::Library oar_parameter_server{
    oar::parameter_server::serve_with_grpc, oar::parameter_server::connect_with_grpc};
