// What entry.cpp gathers for the table of functions that the library exports.
#pragma once

#include <memory>

#include "oar/parameter_server/parameter_server.h"

namespace oar::parameter_server {

std::unique_ptr<Client> connect_with_grpc(const ClientOptions& options);

}  // namespace oar::parameter_server
