// A server without its transport: requests in, replies out.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>

#include "oar/parameter_server/log.h"
#include "oar/parameter_server/options.h"
#include "oar/parameter_server/state.h"

namespace oar::parameter_server {

class Core {
 public:
  // Restores the state of the folder: its checkpoint, then its logs.
  explicit Core(ServerOptions options);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // From any thread. An Error if the request cannot be served; nothing has changed then.
  void handle(const wire::Request& request, wire::Reply* reply);

  bool wait(Milliseconds time);
  void checkpoint();
  void load(const std::string& name, const std::string& folder);

 private:
  class Shared;
  class Exclusive;
  struct Changing {
    std::mutex mutex;
  };

  void recover();
  void replay(const std::string& path, bool last);
  void begin_log(uint64_t size, uint64_t number);
  void checkpoint_in_exclusive();
  void change(const wire::Request& request);
  void change_once(const wire::Request& request);
  void log_and_apply(const wire::Request& request);
  void read(const wire::Request& request, wire::Reply* reply);
  void pull_sparse(const wire::Request& request, wire::Reply* reply);
  void pull_dense(const wire::Request& request, wire::Reply* reply);
  void arrive(const wire::Request& request, wire::Reply* reply);
  void complete(const wire::Request& request);
  void check_reply_size(uint64_t values) const;
  void greet(const wire::Request& request, wire::Reply* reply);

  ServerOptions options_;
  State state_;
  int lock_file_ = -1;

  // Requests share the gate; a checkpoint, a save, a load and a shrink have it alone. The turnstile lets the latter in first.
  std::mutex turnstile_;
  std::shared_mutex gate_;

  std::mutex order_;       // positions are those of the records in the log
  std::mutex disk_order_;  // held by a change that writes to a table on disk
  uint64_t position_ = 0;
  std::unique_ptr<Log> log_;

  std::mutex changing_mutex_;
  std::map<uint64_t, std::unique_ptr<Changing>>
      changing_;  // by client: its changes come one by one

  std::mutex rounds_mutex_;
  std::condition_variable round_ends_;
  std::map<std::string, std::set<uint32_t>> arrived_;

  std::mutex stop_mutex_;
  std::condition_variable stops_;
};

}  // namespace oar::parameter_server
