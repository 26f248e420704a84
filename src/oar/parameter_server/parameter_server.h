// Servers that hold tables of parameters, and the clients that read and change them. Both are in a library of their own,
// liboar_parameter_server.so, which is loaded when first used.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "oar/base/api.h"
#include "oar/parameter_server/options.h"

namespace OAR_API oar {
namespace parameter_server {

class Server {
 public:
  virtual ~Server() = default;
  virtual int port() const = 0;
  // Returns true when every worker has called `Client::stop`, false after the time.
  virtual bool wait(Milliseconds time) = 0;
  // Writes the state to one file, and begins a new log.
  virtual void checkpoint() = 0;
  // Reads what `Client::save` wrote; a table that is missing is created.
  virtual void load(const std::string& folder) = 0;
};

// One push to a sparse table: `gradients` has a row for each key. Keys must differ.
struct SparsePush {
  std::span<const uint64_t> keys;
  std::span<const float> gradients;
  std::span<const float> shows, clicks;  // empty, or one for each key
};

// Calls wait for all servers. A server that does not answer within the time-out is an Error that names it. Changes are
// applied once, however often they are sent. Threads may share a client.
class Client {
 public:
  virtual ~Client() = default;

  // Does nothing if the table is there with the same width, rule and entry.
  virtual void create_table(const TableOptions& options) = 0;
  virtual void pull_dense(const std::string& table, std::span<float> values) = 0;
  virtual void set_dense(const std::string& table, std::span<const float> values) = 0;
  // With `later`, the gradients of all workers are averaged and applied by `arrive`; else they are applied at once. A learning rate
  // of 0 means the table's own.
  virtual void push_dense(const std::string& table, std::span<const float> gradients,
                          float learning_rate, bool later) = 0;
  // `values` has a row for each key. A key without a row reads as the row that it would get; if it must earn its row, as zeros.
  virtual void pull_sparse(const std::string& table, std::span<const uint64_t> keys,
                           std::span<float> values) = 0;
  virtual void push_sparse(const std::string& table, const SparsePush& push, float learning_rate,
                           bool later) = 0;
  // Returns when all workers have called it as often with this channel. With `apply` it ends a step: pushes for later are applied.
  virtual void arrive(const std::string& channel, bool apply) = 0;

  // Every server writes its part of the table, or of all if `table` is empty, into a folder of its machine.
  virtual void save(const std::string& table, const std::string& folder, SaveMode mode) = 0;
  virtual void load(const std::string& table, const std::string& folder) = 0;
  // Ends a period of shows and clicks, and removes rows with low scores or without pushes for long.
  virtual void shrink(const std::string& table) = 0;
  // A table that does not exist is no error here.
  virtual TableSize size(const std::string& table) = 0;
  virtual void checkpoint() = 0;
  // Tells the servers that this worker has ended.
  virtual void stop() = 0;
};

std::unique_ptr<Server> serve(const ServerOptions& options);
std::unique_ptr<Client> connect(const ClientOptions& options);
// Empty if the library can be loaded; else why it cannot.
std::string why_missing();

// What the library exports as `oar_parameter_server`.
struct Library {
  std::unique_ptr<Server> (*serve)(const ServerOptions& options);
  std::unique_ptr<Client> (*connect)(const ClientOptions& options);
};

}  // namespace parameter_server
}  // namespace oar
