// The tables of the device interface: what may be left out, and authors who knew less or more than this host.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include "oar/device/stream.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/families/transfer.h"
#include "oar/ops/gen/all.h"

namespace oar {
namespace {

std::string error_of(const oar_device_api& table) {
  try {
    devices::add(table);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}
void expect_text(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

// What no device can do without.
oar_device_api least_table(const char* name) {
  oar_device_api table{};
  table.struct_size = sizeof(table);
  table.abi_version = OAR_ABI_VERSION;
  table.type_name = name;
  table.allocate = [](int32_t, size_t bytes, oar_stream*) { return std::malloc(bytes + 1); };
  table.free = [](int32_t, void* data, size_t, oar_stream*) { std::free(data); };
  table.copy = [](int32_t, void* to, const void* from, size_t bytes, oar_copy_kind, oar_stream*) {
    std::memcpy(to, from, bytes);
    return int32_t{OAR_OK};
  };
  return table;
}

int32_t triple(oar_kernel_call* call) {
  for (int64_t i = 0; i < call->outputs[0]->numel; ++i)
    static_cast<float*>(call->outputs[0]->data)[i] =
        3 * static_cast<const float*>(call->inputs[0].tensor->data)[i];
  return OAR_OK;
}

Tensor one_two() {
  return Tensor::from_vector(std::vector<double>{1, 2}, std::vector<Dim>{Dim(2)}, DType::Float32);
}
std::vector<double> values(const Tensor& t) { return to_device(t, Device{}).to_vector<double>(); }

TEST(DeviceTable, WhatIsLeftOutHasDefaults) {
  const DeviceType& type = devices::add(least_table("least"));
  const Device device{type.id(), 0};
  EXPECT_EQ(type.count(), 1);
  const Tensor there = to_device(one_two(), device);
  EXPECT_EQ(values(there), (std::vector<double>{1, 2}));
  const Stream stream(device);
  Event event(device);
  event.record(stream);
  event.wait(stream);
  stream.synchronize();
  EXPECT_TRUE(event.reached());
  const DeviceProperties p = devices::properties(device);
  EXPECT_EQ(p.name, "least");
  EXPECT_EQ(p.alignment, 64);
  EXPECT_TRUE(p.asynchronous);
  EXPECT_FALSE(p.host_reads || type.compiles_clusters());
}

TEST(DeviceTable, ThatIsOlderThanTheHosts) {
  oar_device_api table = least_table("shorter");
  // What comes after its end is not read.
  table.struct_size = offsetof(oar_device_api, copy_peer);
  std::memset(reinterpret_cast<char*>(&table) + table.struct_size, 0xff,
              sizeof(table) - table.struct_size);
  const DeviceType& type = devices::add(table);
  const Tensor there = to_device(one_two(), {type.id(), 0});
  EXPECT_EQ(values(there), (std::vector<double>{1, 2}));
  devices::synchronize({type.id(), 0});
}

TEST(DeviceTable, WithKernelsThatAreOlderThanTheHosts) {
  struct Shorter {  // without a context and all fields after it
    const char* op;
    uint32_t op_version;
    const char* name;
    const char* (*accepts)(const oar_kernel_call*);
    int32_t (*run)(oar_kernel_call*);
  };
  static const Shorter kernels[] = {{"abs", 1, "plain", nullptr, triple},
                                    {"neg", 1, "plain", nullptr, triple}};
  oar_device_api table = least_table("short_kernels");
  table.kernels = reinterpret_cast<const oar_kernel*>(kernels);
  table.kernel_count = 2;
  table.kernel_size = sizeof(Shorter);
  const DeviceType& type = devices::add(table);
  EXPECT_EQ(values(neg(to_device(one_two(), {type.id(), 0}))), (std::vector<double>{3, 6}));
}

TEST(DeviceTable, ThatIsNewerThanTheHosts) {
  struct Longer {
    oar_device_api known;
    void (*later)();
  };
  struct LongerKernel {
    oar_kernel known;
    void* later[3];
  };
  static const LongerKernel kernels[] = {{{"abs", 1, "plain", nullptr, triple}, {}},
                                         {{"neg", 1, "plain", nullptr, triple}, {}}};
  Longer table{least_table("longer"), nullptr};
  table.known.struct_size = sizeof(table);
  table.known.kernels = &kernels[0].known;
  table.known.kernel_count = 2;
  table.known.kernel_size = sizeof(LongerKernel);
  const DeviceType& type = devices::add(table.known);
  EXPECT_EQ(values(neg(to_device(one_two(), {type.id(), 0}))), (std::vector<double>{3, 6}));
}

TEST(DeviceTable, ThatNoDeviceCanBeMadeOf) {
  oar_device_api table = least_table("wrong");
  table.struct_size = 0;
  expect_text(error_of(table), "struct_size");
  table = least_table("wrong");
  table.allocate = nullptr;
  expect_text(error_of(table), "allocate");
  table = least_table("wrong");
  table.kernel_count = 1;
  expect_text(error_of(table), "kernel_size");
  table = least_table("wrong");
  table.abi_version = 1;
  expect_text(error_of(table), "version 1 of the device interface");
  EXPECT_EQ(devices::find("wrong"), nullptr);
}

// ---- Plans.

struct Counts {
  int prepared = 0, destroyed = 0, runs = 0;
  bool fails = false;
};

int32_t prepare(const oar_kernel_call* call, oar_plan** plan) {
  auto& counts = *static_cast<Counts*>(call->context);
  if (counts.fails) {
    call->api->set_error("no plan today");
    return OAR_FAILED;
  }
  ++counts.prepared;
  *plan = reinterpret_cast<oar_plan*>(new float(10));
  return OAR_OK;
}
void destroy_plan(void* context, oar_plan* plan) {
  ++static_cast<Counts*>(context)->destroyed;
  delete reinterpret_cast<float*>(plan);
}
int32_t run_planned(oar_kernel_call* call) {
  ++static_cast<Counts*>(call->context)->runs;
  for (int64_t i = 0; i < call->outputs[0]->numel; ++i)
    static_cast<float*>(call->outputs[0]->data)[i] =
        *reinterpret_cast<float*>(call->plan) *
        static_cast<const float*>(call->inputs[0].tensor->data)[i];
  return OAR_OK;
}

TEST(DevicePlan, IsPreparedRunAndDestroyed) {
  static Counts counts;
  static const oar_kernel kernels[] = {
      {"neg", 1, "planned", nullptr, run_planned, &counts, prepare, destroy_plan}};
  oar_device_api table = least_table("planning");
  table.kernels = kernels;
  table.kernel_count = 1;
  table.kernel_size = sizeof(oar_kernel);
  const Device device{devices::add(table).id(), 0};
  EXPECT_EQ(values(neg(to_device(one_two(), device))), (std::vector<double>{10, 20}));
  EXPECT_EQ(counts.prepared, 1);
  EXPECT_EQ(counts.runs, 1);
  EXPECT_EQ(counts.destroyed, 1);
  counts.fails = true;
  try {
    neg(to_device(one_two(), device));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    expect_text(error.what(), "no plan today");
  }
  EXPECT_EQ(counts.runs, 1);
}

}  // namespace
}  // namespace oar
