// A client: it cuts calls into messages for the servers, and sends them again until they are answered.
#include <algorithm>
#include <future>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "oar/base/error.h"
#include "oar/parameter_server/keys.h"
#include "oar/parameter_server/library_entry.h"
#include "oar/parameter_server/state.h"
#include "oar/parameter_server/transport.h"

namespace oar::parameter_server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kMostValuesOfMessage = 1 << 20;
constexpr uint32_t kRoundWaitMs = 2000;

uint64_t random_id() {
  std::random_device device;
  uint64_t id = 0;
  while (id == 0) id = static_cast<uint64_t>(device()) << 32 | device();
  return id;
}

class GrpcClient final : public Client {
 public:
  explicit GrpcClient(ClientOptions options) : options_(std::move(options)), id_(random_id()) {
    user_check(!options_.servers.empty(), ErrorKind::InvalidArgument,
               "a client needs the addresses of its servers.");
    for (const std::string& address : options_.servers) {
      servers_.push_back(std::make_unique<Remote>());
      servers_.back()->address = address;
      servers_.back()->connection = connect_to(address, options_.token);
    }
    at_all_servers([&](uint32_t server) { greet(server); });
  }

  void create_table(const TableOptions& options) override {
    check_options(options);
    {
      const std::lock_guard lock(mutex_);
      tables_[options.name] = options;
    }
    wire::Request request;
    *request.mutable_create() = to_wire(options);
    change_all(request, "create_table of '" + options.name + "'");
  }

  void pull_dense(const std::string& table, std::span<float> values) override {
    const TableOptions options = known(table, false, values.size());
    over_chunks(options, [&](uint32_t server, std::span<const uint64_t> chunks) {
      wire::Request request;
      request.set_table(table);
      request.mutable_pull_dense()->mutable_chunks()->Add(chunks.begin(), chunks.end());
      const wire::Reply reply = call(server, &request, "pull_dense of '" + table + "'");
      const float* from = checked_values(reply, values_in(options, chunks), server);
      for (const uint64_t chunk : chunks) {
        const uint64_t size = chunk_size(options.width, chunk);
        std::copy_n(from, size, values.begin() + static_cast<ptrdiff_t>(chunk * kChunk));
        from += size;
      }
    });
  }

  void set_dense(const std::string& table, std::span<const float> values) override {
    send_dense(table, values, [](wire::Request* request) { return request->mutable_set_dense(); });
  }

  void push_dense(const std::string& table, std::span<const float> gradients, float learning_rate,
                  bool later) override {
    send_dense(table, gradients, [&](wire::Request* request) {
      wire::Dense* push = request->mutable_push_dense();
      push->set_learning_rate(learning_rate);
      push->set_later(later);
      return push;
    });
  }

  void pull_sparse(const std::string& table, std::span<const uint64_t> keys,
                   std::span<float> values) override {
    const TableOptions options = known_sparse(table, keys.size(), values.size());
    over_keys(keys, options.width, [&](uint32_t server, std::span<const uint32_t> places) {
      wire::Request request;
      request.set_table(table);
      for (const uint32_t i : places) request.mutable_pull_sparse()->add_keys(keys[i]);
      const wire::Reply reply = call(server, &request, "pull_sparse of '" + table + "'");
      const float* from = checked_values(reply, places.size() * options.width, server);
      for (const uint32_t i : places) {
        std::copy_n(from, options.width,
                    values.begin() + static_cast<ptrdiff_t>(i * options.width));
        from += options.width;
      }
    });
  }

  void push_sparse(const std::string& table, const SparsePush& push, float learning_rate,
                   bool later) override {
    const TableOptions options = known_sparse(table, push.keys.size(), push.gradients.size());
    for (const auto& counts : {push.shows, push.clicks}) {
      user_check(counts.empty() || counts.size() == push.keys.size(), ErrorKind::InvalidArgument,
                 "push_sparse to '{}' has {} keys, {} shows and {} clicks.\nhint: Pass one of each "
                 "for a key, or none.",
                 table, push.keys.size(), push.shows.size(), push.clicks.size());
    }
    over_keys(push.keys, options.width, [&](uint32_t server, std::span<const uint32_t> places) {
      wire::Request request;
      request.set_table(table);
      wire::Sparse* to = request.mutable_push_sparse();
      to->set_learning_rate(learning_rate);
      to->set_later(later);
      to->mutable_gradients()->Reserve(static_cast<int>(places.size() * options.width));
      for (const uint32_t i : places) {
        to->add_keys(push.keys[i]);
        const float* row = push.gradients.data() + i * options.width;
        to->mutable_gradients()->Add(row, row + options.width);
        if (!push.shows.empty()) to->add_shows(push.shows[i]);
        if (!push.clicks.empty()) to->add_clicks(push.clicks[i]);
      }
      change(server, &request, "push_sparse to '" + table + "'");
    });
  }

  void arrive(const std::string& channel, bool apply) override {
    // Only the end of a step concerns all servers.
    if (!apply) return arrive_at(0, channel, apply);
    at_all_servers([&](uint32_t server) { arrive_at(server, channel, apply); });
  }

  void save(const std::string& table, const std::string& folder, SaveMode mode) override {
    wire::Request request;
    request.set_table(table);
    request.mutable_save()->set_path(folder);
    request.mutable_save()->set_delta(mode == SaveMode::Delta);
    change_all(request, "save to " + folder);
  }

  void load(const std::string& table, const std::string& folder) override {
    at_all_servers([&](uint32_t server) {
      wire::Request request;
      request.set_table(table);
      request.mutable_load()->set_path(folder);
      call(server, &request, "load of " + folder);
    });
  }

  void shrink(const std::string& table) override {
    wire::Request request;
    request.set_table(table);
    request.mutable_shrink();
    change_all(request, "shrink");
  }

  TableSize size(const std::string& table) override {
    std::mutex mutex;
    TableSize sum;
    at_all_servers([&](uint32_t server) {
      wire::Request request;
      request.set_table(table);
      request.mutable_size();
      const wire::Reply reply = call(server, &request, "size of '" + table + "'");
      const std::lock_guard lock(mutex);
      sum.exists = sum.exists && reply.exists();
      sum.rows += reply.rows();
      sum.bytes += reply.bytes();
      sum.candidates += reply.candidates();
    });
    return sum;
  }

  void checkpoint() override {
    at_all_servers([&](uint32_t server) {
      wire::Request request;
      request.mutable_checkpoint();
      call(server, &request, "checkpoint");
    });
  }

  void stop() override {
    wire::Request request;
    request.mutable_stop();
    change_all(request, "stop");
  }

 private:
  struct Remote {
    std::string address;
    std::unique_ptr<Connection> connection;
    std::mutex changing;  // changes reach a server one by one, in the order of their numbers
    uint64_t number = 0;
    // By channel. A job that failed may have left the servers at different rounds.
    std::map<std::string, uint64_t> rounds;
  };

  // ---- Calls

  template <class Work>
  void at_all_servers(Work&& work) {
    std::vector<std::future<void>> others;
    for (uint32_t server = 1; server < servers_.size(); ++server) {
      others.push_back(std::async(std::launch::async, [&work, server] { work(server); }));
    }
    std::exception_ptr first;
    const auto attempt = [&](auto&& run) {
      try {
        run();
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    };
    attempt([&] { work(0); });
    for (std::future<void>& other : others) attempt([&] { other.get(); });
    if (first) std::rethrow_exception(first);
  }

  // Sends a request until the server answers it.
  wire::Reply call(uint32_t server, wire::Request* request, const std::string& what) {
    Remote& remote = *servers_[server];
    request->set_worker(options_.worker);
    const auto deadline = Clock::now() + options_.timeout;
    Milliseconds pause(20);
    for (;;) {
      const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Clock::now());
      wire::Reply reply;
      const Outcome outcome =
          remote.connection->call(*request, &reply, std::max(left, Milliseconds(1)));
      if (outcome.kind == Outcome::Kind::Answered) return reply;
      if (outcome.kind == Outcome::Kind::Refused) {
        throw Error(ErrorKind::Runtime, format("server {} at {} refuses {}: {}", server,
                                               remote.address, what, outcome.why));
      }
      if (Clock::now() + pause >= deadline) {
        throw Error(ErrorKind::Runtime,
                    format("server {} at {} does not answer {} within {} ms: {}.", server,
                           remote.address, what, options_.timeout.count(), outcome.why),
                    "Look into its log, and start it again with the same folder.");
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, Milliseconds(500));
    }
  }

  wire::Reply change(uint32_t server, wire::Request* request, const std::string& what) {
    Remote& remote = *servers_[server];
    const std::lock_guard lock(remote.changing);
    request->set_client(id_);
    request->set_number(++remote.number);
    return call(server, request, what);
  }

  void change_all(const wire::Request& request, const std::string& what) {
    at_all_servers([&](uint32_t server) {
      wire::Request own = request;
      change(server, &own, what);
    });
  }

  void greet(uint32_t server) {
    wire::Request request;
    request.mutable_hello();
    const wire::Reply reply = change(server, &request, "the greeting");
    user_check(reply.index() == server && reply.servers() == servers_.size(),
               ErrorKind::InvalidArgument,
               "the server at {} is number {} of {}, and this worker has it as number {} of "
               "{}.\nhint: Give all processes the same list of servers.",
               servers_[server]->address, reply.index(), reply.servers(), server, servers_.size());
    servers_[server]->rounds.insert(reply.rounds().begin(), reply.rounds().end());
  }

  void arrive_at(uint32_t server, const std::string& channel, bool apply) {
    uint64_t round = 0;
    {
      const std::lock_guard lock(mutex_);
      round = ++servers_[server]->rounds[channel];
    }
    const auto deadline = Clock::now() + options_.timeout;
    for (;;) {
      wire::Request request;
      request.mutable_arrive()->set_channel(channel);
      request.mutable_arrive()->set_round(round);
      request.mutable_arrive()->set_apply(apply);
      request.mutable_arrive()->set_wait_ms(kRoundWaitMs);
      const wire::Reply reply = call(server, &request, "the end of '" + channel + "'");
      if (reply.missing().empty()) return;
      if (Clock::now() < deadline) continue;
      std::string missing;
      for (const uint32_t worker : reply.missing()) {
        missing += (missing.empty() ? "" : ", ") + std::to_string(worker);
      }
      throw Error(
          ErrorKind::Runtime,
          format("the workers with these numbers have not come to round {} of '{}' within {} "
                 "ms: {}.",
                 round, channel, options_.timeout.count(), missing),
          "Look into their logs. All workers must make as many steps.");
    }
  }

  // ---- Tables

  TableOptions known(const std::string& table, bool sparse, uint64_t values) {
    const std::lock_guard lock(mutex_);
    const auto found = tables_.find(table);
    user_check(found != tables_.end() && found->second.sparse == sparse, ErrorKind::InvalidArgument,
               "this worker has no {} table '{}'.\nhint: Call create_table first.",
               sparse ? "sparse" : "dense", table);
    user_check(sparse || values == found->second.width, ErrorKind::InvalidArgument,
               "the dense table '{}' has {} values, and {} were passed.\nhint: Pass all of them.",
               table, found->second.width, values);
    return found->second;
  }

  TableOptions known_sparse(const std::string& table, uint64_t keys, uint64_t values) {
    TableOptions options = known(table, true, values);
    user_check(values == keys * options.width, ErrorKind::InvalidArgument,
               "{} keys of the table '{}' of width {} have {} values, and {} were passed.\nhint: "
               "Pass a row for each key.",
               keys, table, options.width, keys * options.width, values);
    return options;
  }

  static uint64_t values_in(const TableOptions& options, std::span<const uint64_t> chunks) {
    uint64_t count = 0;
    for (const uint64_t chunk : chunks) count += chunk_size(options.width, chunk);
    return count;
  }

  const float* checked_values(const wire::Reply& reply, uint64_t wanted, uint32_t server) const {
    user_check(static_cast<uint64_t>(reply.values_size()) == wanted, ErrorKind::Runtime,
               "server {} at {} has sent {} values instead of {}.\nhint: Use the same version of "
               "Oar for servers and workers.",
               server, servers_[server]->address, reply.values_size(), wanted);
    return reply.values().data();
  }

  // Calls work(server, chunks) for pieces that fit into a message.
  template <class Work>
  void over_chunks(const TableOptions& options, Work&& work) {
    const auto servers = static_cast<uint32_t>(servers_.size());
    at_all_servers([&](uint32_t server) {
      std::vector<uint64_t> own;
      for (uint64_t chunk = 0; chunk < chunks_of(options.width); ++chunk) {
        if (server_of_chunk(options.name, chunk, servers) == server) own.push_back(chunk);
      }
      constexpr size_t kAtOnce = kMostValuesOfMessage / kChunk;
      for (size_t begin = 0; begin < own.size(); begin += kAtOnce) {
        work(server, std::span(own).subspan(begin, std::min(kAtOnce, own.size() - begin)));
      }
    });
  }

  template <class Part>
  void send_dense(const std::string& table, std::span<const float> values, Part&& part) {
    const TableOptions options = known(table, false, values.size());
    over_chunks(options, [&](uint32_t server, std::span<const uint64_t> chunks) {
      wire::Request request;
      request.set_table(table);
      wire::Dense* to = part(&request);
      to->mutable_chunks()->Add(chunks.begin(), chunks.end());
      for (const uint64_t chunk : chunks) {
        const float* from = values.data() + chunk * kChunk;
        to->mutable_values()->Add(from, from + chunk_size(options.width, chunk));
      }
      change(server, &request, "values for '" + table + "'");
    });
  }

  // Calls work(server, places of keys) for pieces that fit into a message.
  template <class Work>
  void over_keys(std::span<const uint64_t> keys, uint64_t width, Work&& work) {
    const auto servers = static_cast<uint32_t>(servers_.size());
    std::vector<std::vector<uint32_t>> places(servers);
    for (size_t i = 0; i < keys.size(); ++i) {
      places[server_of(keys[i], servers)].push_back(static_cast<uint32_t>(i));
    }
    const size_t at_once = std::max<uint64_t>(1, kMostValuesOfMessage / (width + 4));
    at_all_servers([&](uint32_t server) {
      const std::span<const uint32_t> own = places[server];
      for (size_t begin = 0; begin < own.size(); begin += at_once) {
        work(server, own.subspan(begin, std::min(at_once, own.size() - begin)));
      }
    });
  }

  ClientOptions options_;
  uint64_t id_;
  std::vector<std::unique_ptr<Remote>> servers_;
  std::mutex mutex_;  // of the rounds, and of what follows
  std::map<std::string, TableOptions> tables_;
};

}  // namespace

std::unique_ptr<Client> connect_with_grpc(const ClientOptions& options) {
  return std::make_unique<GrpcClient>(options);
}

}  // namespace oar::parameter_server
