#include "oar/backend/cts/services.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "oar/device/stream.h"
#include "oar/ops/families/transfer.h"

namespace oar::cts {
namespace {

void demand(bool holds, const char* text) { user_check(holds, ErrorKind::Runtime, "{}", text); }

std::vector<int64_t> numbers(int64_t count, int64_t first) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

Tensor host(int64_t count, int64_t first = 1) {
  return Tensor::from_vector(numbers(count, first), std::vector<Dim>{Dim(count)}, DType::Int64);
}

void copies(Device device) {
  for (int64_t count : {0, 1, 17, 4096, 1 << 20}) {
    const Tensor there = to_device(host(count), device);
    demand(there.device() == device, "a copy is not on the device it was sent to");
    demand(to_device(there, Device{}).to_vector<int64_t>() == numbers(count, 1),
           "data that was copied to the device and back has changed");
  }
}

// The host may reuse its memory as soon as a copy from it returns.
void host_memory_is_read_at_once(Device device) {
  Tensor source = host(1 << 16);
  const Tensor there = to_device(source, device);
  std::fill_n(source.data<int64_t>(), 1 << 16, int64_t{-1});
  const bool intact =
      device.is_cpu() || to_device(there, Device{}).to_vector<int64_t>() == numbers(1 << 16, 1);
  demand(intact, "a copy read the host's memory after it had returned");
}

// Memory that is freed while a copy out of it is queued.
void memory_outlives_queued_work(Device device) {
  for (int64_t round = 0; round < 20; ++round) {
    Tensor second;
    {
      const Tensor first = to_device(host(1 << 14, round), device);
      second = Tensor::empty(first.dims(), DType::Int64, device);
      devices::copy(device, second->data, device, first->data, sizeof(int64_t) << 14,
                    current_stream(device));
    }
    const Tensor other = to_device(host(1 << 14, -1000), device);
    demand(to_device(second, Device{}).to_vector<int64_t>() == numbers(1 << 14, round),
           "memory was reused while queued work still read it");
  }
}

void streams(Device device) {
  const Stream first(device), second(device);
  Tensor there;
  {
    const StreamScope scope(first);
    there = to_device(host(1000), device);
  }
  Event ready(device);
  ready.record(first);
  ready.wait(second);
  {
    const StreamScope scope(second);
    demand(to_device(there, Device{}).to_vector<int64_t>() == numbers(1000, 1),
           "work after an event did not see the work before it");
  }
  first.synchronize();
  second.synchronize();
  demand(ready.reached(), "an event in a stream that was waited for is not reached");
}

void events(Device device) {
  const Stream stream(device);
  Event event(device);
  for (int round = 0; round < 3; ++round) {
    event.record(stream);
    stream.synchronize();
    demand(event.reached(), "an event is not reached after its stream was synchronised");
  }
}

void out_of_memory(Device device) {
  bool refused = false;
  try {
    Tensor::empty(std::vector<Dim>{Dim(int64_t{1} << 50)}, DType::Float64, device);
  } catch (const Error& error) {
    refused = error.kind() == ErrorKind::OutOfMemory;
  }
  demand(refused, "8 PiB were not rejected as OutOfMemory");
  copies(device);  // the device must still work
}

void properties(Device device) {
  const DeviceProperties p = devices::properties(device);
  demand(!p.name.empty(), "the device has no name");
  demand(p.memory_bytes >= 0 && p.free_bytes >= 0, "the sizes of its memory are negative");
  demand(p.alignment > 0 && (p.alignment & (p.alignment - 1)) == 0,
         "the alignment is not a power of 2");
  for (int64_t count : {1, 3, 1000}) {
    const Tensor there = to_device(host(count), device);
    demand(reinterpret_cast<uintptr_t>(there->data) % static_cast<uintptr_t>(p.alignment) == 0,
           "allocated memory is not aligned as the device says");
  }
}

// From every device to this one, directly or by way of the host.
void copies_from_others(Device device) {
  for (const DeviceType* type : devices::all())
    for (int i = 0; i < type->count(); ++i) {
      const Device other{type->id(), static_cast<uint8_t>(i)};
      for (int64_t round = 0; round < 5; ++round) {
        Tensor there =
            to_device(to_device(host(5000, round), other), device);  // the source goes at once
        const Tensor more = to_device(host(5000, -1), other);
        demand(to_device(there, Device{}).to_vector<int64_t>() == numbers(5000, round),
               "what came from another device has changed");
      }
    }
}

void no_stale_error(Device device) {
  devices::synchronize(device);
  devices::check_asynchronous(device);
}

}  // namespace

std::vector<Finding> check_services(Device device) {
  const std::pair<const char*, void (*)(Device)> services[] = {
      {"device: copies", copies},
      {"device: host memory is read at once", host_memory_is_read_at_once},
      {"device: memory outlives queued work", memory_outlives_queued_work},
      {"device: streams", streams},
      {"device: events", events},
      {"device: out of memory", out_of_memory},
      {"device: properties", properties},
      {"device: copies from others", copies_from_others},
      {"device: no stale error", no_stale_error},
  };
  std::vector<Finding> findings;
  for (const auto& [name, check] : services) {
    try {
      check(device);
      findings.push_back({name, Outcome::Pass, {}});
    } catch (const std::exception& error) {
      findings.push_back({name, Outcome::Fail, error.what()});
    }
  }
  return findings;
}

}  // namespace oar::cts
