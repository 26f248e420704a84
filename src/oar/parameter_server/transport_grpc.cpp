#include <grpcpp/grpcpp.h>

#include "oar/base/error.h"
#include "oar/parameter_server/transport.h"
#include "oar/parameter_server/wire.grpc.pb.h"

namespace oar::parameter_server {
namespace {

constexpr char kTokenKey[] = "oar-token";
constexpr int kMostReplyBytes = 1 << 30;

// Takes as long for every wrong token.
bool same_text(std::string_view a, std::string_view b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    different |= static_cast<unsigned>(a[i] ^ (i < b.size() ? b[i] : '\0'));
  }
  return different == 0;
}

class Service final : public wire::ParameterServer::Service {
 public:
  Service(std::string token, Answer answer)
      : token_(std::move(token)), answer_(std::move(answer)) {}

  grpc::Status Call(grpc::ServerContext* context, const wire::Request* request,
                    wire::Reply* reply) override {
    const auto& metadata = context->client_metadata();
    const auto token = metadata.find(kTokenKey);
    if (token == metadata.end() ||
        !same_text({token->second.data(), token->second.size()}, token_)) {
      return {
          grpc::StatusCode::UNAUTHENTICATED,
          "the token is not that of the server. hint: set OAR_PS_TOKEN to the same text for all "
          "processes."};
    }
    try {
      answer_(*request, reply);
      return grpc::Status::OK;
    } catch (const Error& error) {
      return {grpc::StatusCode::INVALID_ARGUMENT, error.what()};
    } catch (const std::exception& error) {
      return {grpc::StatusCode::INTERNAL, error.what()};
    }
  }

 private:
  std::string token_;
  Answer answer_;
};

class GrpcListener final : public Listener {
 public:
  GrpcListener(const std::string& address, const std::string& token, uint64_t most_bytes,
               Answer answer)
      : service_(token, std::move(answer)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(most_bytes));
    builder.SetMaxSendMessageSize(static_cast<int>(most_bytes));
    // Another server at the address is an error, not a partner.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    server_ = builder.BuildAndStart();
    user_check(server_ != nullptr && port_ != 0, ErrorKind::Runtime,
               "the address {} cannot be listened at.\nhint: It may be in use; pass another port.",
               address);
  }
  ~GrpcListener() override {
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
  }
  int port() const override { return port_; }

 private:
  Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class GrpcConnection final : public Connection {
 public:
  GrpcConnection(const std::string& address, std::string token) : token_(std::move(token)) {
    grpc::ChannelArguments options;
    options.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    options.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
    options.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    options.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    options.SetMaxReceiveMessageSize(kMostReplyBytes);
    stub_ = wire::ParameterServer::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), options));
  }

  Outcome call(const wire::Request& request, wire::Reply* reply, Milliseconds timeout) override {
    grpc::ClientContext context;
    context.AddMetadata(kTokenKey, token_);
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    const grpc::Status status = stub_->Call(&context, request, reply);
    if (status.ok()) return {};
    const bool unreachable = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                             status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
                             status.error_code() == grpc::StatusCode::CANCELLED;
    return {unreachable ? Outcome::Kind::Unreachable : Outcome::Kind::Refused,
            status.error_message()};
  }

 private:
  std::string token_;
  std::unique_ptr<wire::ParameterServer::Stub> stub_;
};

}  // namespace

std::unique_ptr<Listener> listen(const std::string& address, const std::string& token,
                                 uint64_t most_message_bytes, Answer answer) {
  user_check(most_message_bytes >= 1 << 20 && most_message_bytes <= 1 << 30,
             ErrorKind::InvalidArgument,
             "the limit for messages is {} bytes.\nhint: Pass 1 MiB to 1 GiB.", most_message_bytes);
  return std::make_unique<GrpcListener>(address, token, most_message_bytes, std::move(answer));
}

std::unique_ptr<Connection> connect_to(const std::string& address, const std::string& token) {
  return std::make_unique<GrpcConnection>(address, token);
}

}  // namespace oar::parameter_server
