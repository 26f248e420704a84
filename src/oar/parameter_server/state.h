// What a server holds, how a change changes it, and the files that keep it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "oar/parameter_server/table.h"
#include "oar/parameter_server/wire.pb.h"

namespace oar::parameter_server {

wire::Table to_wire(const TableOptions& options);
TableOptions from_wire(const wire::Table& table);

class State {
 public:
  State(Part part, std::string folder, uint32_t workers)
      : part_(part), folder_(std::move(folder)), workers_(workers) {}

  // An Error if there is none.
  Table& table(const std::string& name) const;
  SparseTable& sparse(const std::string& name) const;
  DenseTable& dense(const std::string& name) const;
  const auto& tables() const { return tables_; }

  // An Error if the request cannot be applied. What passes is logged.
  void check(const wire::Request& request) const;
  // Does nothing if the table is there.
  void create(const TableOptions& options);
  // Whether the change writes to a table on disk: such changes are made one after another.
  bool writes_to_disk(const wire::Request& request) const;
  // Changes that `changes_rows_only` may be applied by several threads.
  static bool changes_rows_only(const wire::Request& request);
  void apply(const wire::Request& request, uint64_t position);

  // The last change of a client that was applied.
  uint64_t last_number(uint64_t client) const;
  uint64_t round(const std::string& channel) const;
  std::map<std::string, uint64_t> rounds() const;
  size_t stopped() const;
  void forget_stopped();

  // The whole state up to a position, in one file.
  void write_checkpoint(const std::string& path, uint64_t position) const;
  // Returns the position.
  uint64_t read_checkpoint(const std::string& path);

  // The tables that are meant: one, or all if the name is empty.
  std::vector<Table*> chosen(const std::string& name) const;
  void save(const std::string& name, const std::string& folder, SaveMode mode) const;
  // Reads the parts of all servers of a saved table, and keeps the rows that belong here.
  void load(const std::string& name, const std::string& folder);

 private:
  void push_dense(const std::string& name, const wire::Dense& push, float scale);
  void push_sparse(const std::string& name, const wire::Sparse& push, float scale,
                   uint64_t position);
  void keep_for_later(const wire::Request& request);
  void apply_pending(uint64_t position);
  void greet(const wire::Request& request);
  void read_part(const std::string& path, bool replace, std::set<std::string>* cleared);

  Part part_;
  std::string folder_;
  uint32_t workers_;
  std::map<std::string, std::unique_ptr<Table>> tables_;
  mutable std::mutex mutex_;  // of what follows
  std::map<uint64_t, uint64_t> clients_;
  std::map<std::string, uint64_t> rounds_;
  std::set<uint32_t> stopped_;
  std::vector<wire::Request> pending_;  // pushes that wait for the end of a step
};

}  // namespace oar::parameter_server
