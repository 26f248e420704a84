// Any request, and any saved table: either an Error, or a server that goes on.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>

#include "driver.h"
#include "oar/base/error.h"
#include "oar/parameter_server/core.h"
#include "oar/parameter_server/records.h"

namespace {

namespace fs = std::filesystem;
namespace ps = oar::parameter_server;
namespace wire = ps::wire;

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

// In memory where that is possible: each change is synced.
struct Folder {
  Folder() {
    std::string text = (fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path().string()) +
                       std::string("/oar_fuzz_XXXXXX");
    path = ::mkdtemp(text.data());
  }
  ~Folder() { fs::remove_all(path); }
  std::string path;
};

wire::Request with_table(const char* table) {
  wire::Request request;
  request.set_client(1);
  request.set_number(1);
  request.set_table(table);
  return request;
}

ps::TableOptions options(bool sparse) {
  ps::TableOptions made;
  made.name = sparse ? "s" : "d";
  made.sparse = sparse;
  made.width = 2;
  made.entry = {ps::EntryKind::Count, sparse ? 2.0F : 0.0F};
  return made;
}

class Server {
 public:
  Server() {
    ps::ServerOptions settings;
    settings.folder = folder_.path + "/server";
    settings.log_bytes = 1 << 20;
    core_ = std::make_unique<ps::Core>(settings);
    for (const bool sparse : {false, true}) {
      wire::Request request = with_table("");
      *request.mutable_create() = ps::to_wire(options(sparse));
      send(std::move(request));
    }
  }

  void send(wire::Request request) {
    // Paths are those of whoever knows the token, and so are large tables.
    if (request.has_save() || request.has_load()) return;
    if (request.has_create()) {
      request.mutable_create()->set_on_disk(false);
      request.mutable_create()->set_width(request.create().width() % 1000);
    }
    if (request.number() != 0) request.set_number(++number_);
    wire::Reply reply;
    attempt([&] { core_->handle(request, &reply); });
  }

  // The content of a record, with a checksum that is right.
  void load(const std::string& content) {
    wire::Record head, end;
    *head.mutable_table()->mutable_table() = ps::to_wire(options(true));
    head.mutable_table()->set_servers(1);
    end.set_end(2);
    const std::string saved = folder_.path + "/saved";
    fs::create_directories(saved);
    {
      std::ofstream file(saved + "/s.base.0-of-1", std::ios::binary);
      for (const std::string& record :
           {head.SerializeAsString(), content, end.SerializeAsString()}) {
        file << ps::record_head(record) << record;
      }
    }
    attempt([&] { core_->load("s", saved); });
  }

 private:
  template <class Work>
  static void attempt(Work&& work) {
    try {
      work();
    } catch (const oar::Error& error) {
      if (error.kind() == oar::ErrorKind::Internal) broken(error.what());
    }
  }

  Folder folder_;
  std::unique_ptr<ps::Core> core_;
  uint64_t number_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Server server;
  const std::string content(reinterpret_cast<const char*>(data), size);
  wire::Request request;
  if (request.ParseFromString(content)) server.send(std::move(request));
  wire::Record record;
  // A table of any width would take any memory.
  if (size % 16 == 0 && record.ParseFromString(content) && !record.has_table()) {
    server.load(content);
  }
  return 0;
}

std::vector<std::string> seeds() {
  std::vector<std::string> made;
  wire::Request push = with_table("s");
  for (const uint64_t key : {1, 2, 1}) {
    push.mutable_push_sparse()->add_keys(key);
    push.mutable_push_sparse()->add_gradients(0.5F);
    push.mutable_push_sparse()->add_gradients(-1.0F);
    push.mutable_push_sparse()->add_shows(1.0F);
  }
  made.push_back(push.SerializeAsString());
  push.mutable_push_sparse()->set_later(true);
  made.push_back(push.SerializeAsString());
  wire::Request pull = with_table("s");
  pull.mutable_pull_sparse()->add_keys(7);
  made.push_back(pull.SerializeAsString());
  wire::Request dense = with_table("d");
  dense.mutable_push_dense()->add_chunks(0);
  dense.mutable_push_dense()->add_values(1.0F);
  dense.mutable_push_dense()->add_values(2.0F);
  made.push_back(dense.SerializeAsString());
  *dense.mutable_set_dense() = dense.push_dense();
  made.push_back(dense.SerializeAsString());
  wire::Request create = with_table("");
  *create.mutable_create() = ps::to_wire(options(true));
  made.push_back(create.SerializeAsString());
  wire::Request arrive = with_table("");
  arrive.mutable_arrive()->set_channel("step");
  arrive.mutable_arrive()->set_round(1);
  arrive.mutable_arrive()->set_apply(true);
  made.push_back(arrive.SerializeAsString());
  wire::Request others = with_table("s");
  others.mutable_shrink();
  made.push_back(others.SerializeAsString());
  others.mutable_size();
  made.push_back(others.SerializeAsString());
  wire::Record rows;
  rows.mutable_rows()->add_keys(3);
  for (int i = 0; i < 6; ++i) rows.mutable_rows()->add_values(static_cast<float>(i));
  made.push_back(rows.SerializeAsString());
  return made;
}

std::vector<std::string> dictionary() {
  return {"s", "d", "step", std::string("\0\0\x80\x3f", 4), std::string("\0\0\xc0\x7f", 4)};
}
