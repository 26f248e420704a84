// The stores that there are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "oar/base/api.h"
#include "oar/distributed/store.h"

namespace OAR_API oar {
namespace distributed {

// Values are files of a folder that all processes see. The folder must be new for each job.
std::shared_ptr<Store> file_store(const std::string& folder);

// Values are in the server of a job.
std::shared_ptr<Store> tcp_store(const std::string& host, uint16_t port, Milliseconds timeout);

// … which is a thread of one of its processes or of the launcher. Port 0: any free one.
class StoreServer {
 public:
  virtual ~StoreServer() = default;
  virtual uint16_t port() const = 0;
};
std::unique_ptr<StoreServer> serve_store(const std::string& host, uint16_t port);

// A part of another store: its keys begin with `prefix`.
std::shared_ptr<Store> part_of(std::shared_ptr<Store> store, std::string prefix);

// "file:///shared/job17", "tcp://10.0.0.1:29500"
std::shared_ptr<Store> open_store(const std::string& address, Milliseconds timeout);

}  // namespace distributed
}  // namespace oar
