// Devices: loading plug-ins, transfers, streams, late failures, calls that mix devices.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "device_util.h"
#include "oar/autograd/engine.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/families/transfer.h"
#include "oar/ops/gen/all.h"

namespace oar {
namespace {

Tensor numbers(const std::vector<double>& values, DType dtype = DType::Float32) {
  const std::vector<Dim> shape{Dim(static_cast<int64_t>(values.size()))};
  return Tensor::from_vector(values, shape, dtype);
}
Tensor matrix(const std::vector<double>& values, int64_t rows, int64_t columns) {
  return Tensor::from_vector(values, std::vector<Dim>{Dim(rows), Dim(columns)}, DType::Float32);
}
std::vector<double> values(const Tensor& t) { return to_device(t, Device{}).to_vector<double>(); }

template <class F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorKind::Internal, "none");
}
void expect_text(const Error& error, std::string_view text) {
  EXPECT_NE(std::string_view(error.what()).find(text), std::string_view::npos) << error.what();
}

// ---- Loading.

TEST(DevicePlugin, UnknownPath) {
  const Error error = error_of([] { devices::load_plugin("/nowhere/at_all.so"); });
  EXPECT_EQ(error.kind(), ErrorKind::NotFound);
  expect_text(error, "/nowhere/at_all.so");
}

TEST(DevicePlugin, OfVersion1) {
  const Error error = error_of([] { devices::load_plugin(plugin_path("version1_device")); });
  EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
  expect_text(error, "was built for version 1 of the device interface; this is version 2");
  expect_text(error, "Rebuild it");
  EXPECT_EQ(devices::find("version1"), nullptr);
}

TEST(DevicePlugin, OfALaterVersion) {
  const Error error = error_of([] { devices::load_plugin(plugin_path("next_device")); });
  EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
  expect_text(error, "version 3 of the device interface");
  EXPECT_EQ(devices::find("next"), nullptr);
}

TEST(DevicePlugin, ALibraryThatIsNone) {
  expect_text(error_of([] { devices::load_plugin(plugin_path("not_a_plugin")); }),
              "oar_device_init");
}

TEST(DevicePlugin, RefusesToStart) {
  expect_text(error_of([] { devices::load_plugin(plugin_path("refusing_device")); }),
              "there is no such card in this machine");
}

TEST(DevicePlugin, TwiceIsAnError) {
  async_device();
  expect_text(error_of([] { devices::load_plugin(plugin_path("async_device")); }),
              "registered already");
}

TEST(DevicePlugin, SaysWhatItIs) {
  const DeviceProperties p = devices::properties(async_device(1));
  EXPECT_EQ(p.name, "the second queue");
  EXPECT_EQ(p.memory_bytes, int64_t{1} << 40);
  EXPECT_EQ(p.alignment, 128);
  EXPECT_TRUE(p.asynchronous);
  EXPECT_FALSE(p.host_reads);
  const DeviceProperties cpu = devices::properties(Device{});
  EXPECT_TRUE(cpu.host_reads && !cpu.asynchronous);
}

TEST(DevicePlugin, NamesItsDevices) {
  EXPECT_EQ(devices::parse("async"), async_device(0));
  EXPECT_EQ(devices::parse("async:1"), async_device(1));
  EXPECT_EQ(devices::to_string(async_device(1)), "async:1");
  expect_text(error_of([] { devices::parse("async:2"); }), "2 devices");
  expect_text(error_of([] { devices::parse("npx"); }), "async");
}

// ---- Transfers.

TEST(DeviceTransfer, ThereAndBack) {
  const Tensor x = matrix({1, 2, 3, 4, 5, 6}, 2, 3);
  const Tensor there = to_device(x, async_device());
  EXPECT_EQ(there.device(), async_device());
  EXPECT_EQ(values(there), values(x));
  EXPECT_TRUE(to_device(there, async_device()).is_same(there));
}

TEST(DeviceTransfer, ViewsAreMadeContiguous) {
  const Tensor x = matrix({1, 2, 3, 4, 5, 6}, 2, 3);
  EXPECT_EQ(values(to_device(transpose(x, {1, 0}), async_device())),
            (std::vector<double>{1, 4, 2, 5, 3, 6}));
  const Tensor there = to_device(x, async_device());
  EXPECT_EQ(values(transpose(there, {1, 0})), (std::vector<double>{1, 4, 2, 5, 3, 6}));
}

TEST(DeviceTransfer, BetweenDevices) {
  const Tensor first = exp(to_device(numbers({0, 0, 0}), async_device(0)));
  const int64_t before = async_peer_copies();
  const Tensor second = to_device(first, async_device(1));
  EXPECT_EQ(second.device(), async_device(1));
  EXPECT_EQ(async_peer_copies(), before + 1);
  EXPECT_EQ(values(second), (std::vector<double>{1, 1, 1}));
  const Tensor null =
      to_device(second, devices::parse("null"));  // another type, by way of the host
  EXPECT_EQ(values(null), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(values(to_device(null, async_device(0))), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(async_peer_copies(), before + 1);
}

TEST(DeviceTransfer, EmptyAndZeroDimensional) {
  EXPECT_EQ(values(to_device(numbers({}), async_device())), std::vector<double>{});
  EXPECT_EQ(values(to_device(Tensor::scalar(2.5, DType::Float64), async_device())),
            std::vector<double>{2.5});
}

TEST(DeviceTransfer, AutogradGoesThrough) {
  const Tensor x = numbers({1, 2, 3});
  set_stop_gradient(x, false);
  const Tensor there = to_device(x, async_device());
  const Tensor loss = sum(there * there);
  backward(std::vector<Tensor>{loss});
  const Tensor grad = history_of(x).grad.get();
  EXPECT_TRUE(grad.device().is_cpu());
  EXPECT_EQ(grad.to_vector<double>(), (std::vector<double>{2, 4, 6}));
}

TEST(DeviceTransfer, ValuesOfADeviceAreNotReadByAccident) {
  const Tensor there = to_device(numbers({1}), async_device());
  EXPECT_THROW(there.item_double(), Error);
  EXPECT_THROW(there.to_vector<double>(), Error);
}

// ---- Calls.

TEST(DeviceCall, KernelsRunOnTheDevice) {
  const Tensor x = to_device(numbers({1, 2, 3}), async_device());
  const Tensor y = sum(x * x + x);
  EXPECT_EQ(y.device(), async_device());
  EXPECT_EQ(values(y), std::vector<double>{20});
}

TEST(DeviceCall, LiteralsAndScalarsGoAlong) {
  const Tensor x = to_device(numbers({1, 2, 3}), async_device());
  EXPECT_EQ(values(x * 2.0 + 1), (std::vector<double>{3, 5, 7}));
  EXPECT_EQ(values(Tensor::scalar(10.0, DType::Float32) - x), (std::vector<double>{9, 8, 7}));
  EXPECT_EQ((x * 2.0).device(), async_device());
}

TEST(DeviceCall, OpsWithoutAKernelDecompose) {
  const Tensor x = to_device(matrix({1, 2, 3, 4}, 2, 2), async_device());
  EXPECT_EQ(values(matmul(x, x, true, false)), (std::vector<double>{10, 14, 14, 20}));
  EXPECT_EQ(values(ones_like(x)), (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(ones_like(x).device(), async_device());
  EXPECT_EQ(values(linear(x, x, to_device(numbers({1, 1}), async_device()))),
            (std::vector<double>{8, 11, 16, 23}));
}

TEST(DeviceCall, OpsWithNeitherSaySo) {
  const Tensor x = to_device(numbers({1, 2, 3}), async_device());
  const Error error = error_of([&] { erf(x); });
  EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
  expect_text(error, "async:0 has no kernel for this op");
  expect_text(error, "some thirty ops");
}

TEST(DeviceCall, DeclinedDtypesSaySo) {
  const Tensor x = to_device(numbers({1, 2}, DType::Float16), async_device());
  const Error error = error_of([&] { x + x; });
  EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
  expect_text(error, "no 16-bit floats");
}

TEST(DeviceCall, MixedDevicesAreAnError) {
  const Tensor here = numbers({1, 2, 3});
  const Tensor there = to_device(here, async_device(0)),
               elsewhere = to_device(here, async_device(1));
  for (const Tensor& other : {here, elsewhere}) {
    const Error error = error_of([&] { there + other; });
    EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
    expect_text(error, "different devices");
  }
}

TEST(DeviceCall, InPlace) {
  const Tensor x = to_device(numbers({1, 2, 3}), async_device());
  add_(x, to_device(numbers({1, 1, 1}), async_device()));
  EXPECT_EQ(values(x), (std::vector<double>{2, 3, 4}));
}

TEST(DeviceCall, CreationFollowsTheCurrentDevice) {
  devices::set_current(async_device());
  const Tensor made = full(std::vector<Dim>{Dim(2)}, Scalar(3.0));
  devices::set_current(Device{});
  EXPECT_EQ(made.device(), async_device());
  EXPECT_EQ(values(made), (std::vector<double>{3, 3}));
}

TEST(DeviceCall, TrainingStep) {
  const Device device = async_device();
  const Tensor weight = to_device(matrix({1, 2, 3, 4}, 2, 2), device);
  set_stop_gradient(weight, false);
  const Tensor x = to_device(matrix({1, 0, 0, 1}, 2, 2), device);
  const Tensor loss = sum(exp(matmul(x, weight)));
  backward(std::vector<Tensor>{loss});
  const Tensor grad = history_of(weight).grad.get();
  EXPECT_EQ(grad.device(), device);
  const std::vector<double> got = values(grad);
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(got[static_cast<size_t>(i)], std::exp(i + 1.0), 1e-4);
}

// ---- Streams, events, memory.

TEST(DeviceStream, CallsReturnBeforeTheWorkIsDone) {
  const Tensor x = to_device(numbers({1, 2, 3}), async_device());
  devices::synchronize(async_device());
  Event event(async_device());
  const Stream stream(async_device());
  async_pause(true);
  Tensor y;
  {
    const StreamScope scope(stream);
    y = x + x;
  }
  event.record(stream);
  EXPECT_FALSE(event.reached());
  async_pause(false);
  stream.synchronize();
  EXPECT_TRUE(event.reached());
  EXPECT_EQ(values(y), (std::vector<double>{2, 4, 6}));
}

TEST(DeviceStream, AnEventOrdersTwoStreams) {
  const Device device = async_device();
  const Stream producer(device), consumer(device);
  for (int round = 0; round < 50; ++round) {
    Tensor x = to_device(numbers(std::vector<double>(100, round)), device);
    devices::synchronize(device);
    Event ready(device);
    Tensor y, z;
    {
      const StreamScope scope(producer);
      y = x + x;
      for (int i = 0; i < 5; ++i) y = y + x;
      ready.record(producer);
    }
    {
      const StreamScope scope(consumer);
      ready.wait(consumer);
      z = y + x;
    }
    consumer.synchronize();
    EXPECT_EQ(values(z), std::vector<double>(100, 8.0 * round));
  }
}

TEST(DeviceMemory, FreedBehindQueuedWorkAndIntact) {
  const Device device = async_device();
  devices::synchronize(device);
  const int64_t before = async_live_blocks();  // programs of other tests are kept
  {
    Tensor x = to_device(numbers(std::vector<double>(1000, 1)), device);
    for (int i = 0; i < 100; ++i) x = x + x * 0.5;  // every intermediate dies at once
    EXPECT_NEAR(values(x)[0] / std::pow(1.5, 100), 1, 1e-4);
  }
  EXPECT_EQ(async_damaged_blocks(), 0);
  // The last blocks go when every stream has come past their release.
  for (int i = 0; i < 1000 && async_live_blocks() > before; ++i) {
    devices::synchronize(device);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_LE(async_live_blocks(), before);
}

TEST(DeviceMemory, TooMuchIsAnError) {
  const Error error = error_of([] {
    Tensor::empty(std::vector<Dim>{Dim(int64_t{1} << 45)}, DType::Float64, async_device());
  });
  EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
}

// ---- Late failures.

TEST(DeviceFailure, SurfacesAtTheNextSynchronisation) {
  const Tensor x = to_device(numbers({1, 2, 3}), async_device());
  async_fail_next("the test asked for it");
  const Tensor y = x + x;  // queued: no error yet
  const Error error = error_of([] { devices::synchronize(async_device()); });
  EXPECT_EQ(error.kind(), ErrorKind::Runtime);
  expect_text(error, "earlier work on async:0 failed: the test asked for it");
  devices::synchronize(async_device());  // reported once
  EXPECT_EQ(values(x + x), (std::vector<double>{2, 4, 6}));
}

TEST(DeviceFailure, SurfacesAtACopyToTheHost) {
  const Tensor x = to_device(numbers({1, 2, 3}), async_device());
  async_fail_next("broken");
  const Tensor y = x + x;
  expect_text(error_of([&] { values(y); }), "broken");
  EXPECT_EQ(values(x), (std::vector<double>{1, 2, 3}));
}

TEST(DeviceFailure, StaysInItsStream) {
  const Tensor x = to_device(numbers({1, 2, 3}), async_device());
  devices::synchronize(async_device());
  const Stream stream(async_device());
  {
    const StreamScope scope(stream);
    async_fail_next("in the side stream");
    const Tensor y = x + x;
  }
  EXPECT_EQ(values(x * x), (std::vector<double>{1, 4, 9}));
  expect_text(error_of([&] { stream.synchronize(); }), "in the side stream");
}

// ---- The null device.

TEST(NullDevice, HasEveryOpAndComputesNothing) {
  const Device null = devices::parse("null");
  const Tensor x = to_device(matrix({1, 2, 3, 4}, 2, 2), null);
  EXPECT_EQ(values(x), (std::vector<double>{1, 2, 3, 4}));
  const Tensor y = matmul(exp(x), x);
  EXPECT_EQ(y.device(), null);
  EXPECT_EQ(values(y), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(values(erf(x)), (std::vector<double>{0, 0, 0, 0}));
}

}  // namespace
}  // namespace oar
