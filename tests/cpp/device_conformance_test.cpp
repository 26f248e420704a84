// The conformance suite on the devices there are.
#include <gtest/gtest.h>

#include <cstdlib>

#include "device_util.h"
#include "oar/backend/cts/conformance.h"
#include "oar/device/device.h"

namespace oar {
namespace {

using cts::Finding;
using cts::Outcome;

int64_t count(const std::vector<Finding>& findings, Outcome outcome) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const Finding& f) { return f.outcome == outcome; });
}

bool passes(const std::vector<Finding>& findings, std::string_view op) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& f) {
    return f.outcome == Outcome::Pass && f.what.starts_with(std::string(op) + " sample");
  });
}

TEST(Conformance, CpuAgreesWithItself) {
  const std::vector<Finding> findings = cts::run_conformance(Device{});
  EXPECT_EQ(count(findings, Outcome::Fail), 0) << cts::summary(findings);
  EXPECT_EQ(count(findings, Outcome::Unsupported), 0) << cts::summary(findings);
  EXPECT_GT(findings.size(), 1000u);
}

TEST(Conformance, AsyncPlugin) {
  const std::vector<Finding> findings = cts::run_conformance(async_device());
  EXPECT_EQ(count(findings, Outcome::Fail), 0) << cts::summary(findings);
  for (const char* op :
       {"add", "exp", "sum", "mean", "max", "where", "relu", "less_than", "cast", "full"})
    EXPECT_TRUE(passes(findings, op)) << op;
  for (const char* composite : {"matmul", "linear", "zeros_like", "einsum", "softmax", "mse_loss",
                                "sgd_", "adamw_"})  // by decomposition
    EXPECT_TRUE(passes(findings, composite)) << composite;
  EXPECT_GT(count(findings, Outcome::Unsupported), 0);
}

TEST(Conformance, NullFindsTheWrongNumbers) {
  const std::vector<Finding> findings =
      cts::run_conformance(devices::parse("null"), {.only_op = "exp"});
  EXPECT_GT(count(findings, Outcome::Fail), 0);
  EXPECT_NE(cts::summary(findings).find("FAILED exp sample 0"), std::string::npos);
}

TEST(Conformance, Plugin) {
  const char* plugin = std::getenv("OAR_CTS_PLUGIN");
  const char* device = std::getenv("OAR_CTS_DEVICE");
  if (device == nullptr) GTEST_SKIP() << "OAR_CTS_DEVICE names no device";
  if (plugin != nullptr) devices::load_plugin(plugin);
  const char* op = std::getenv("OAR_CTS_OP");
  const std::vector<Finding> findings =
      cts::run_conformance(devices::parse(device), {.only_op = op == nullptr ? "" : op});
  const std::string text = cts::summary(findings);
  std::puts(text.c_str());
  EXPECT_EQ(count(findings, Outcome::Fail), 0);
}

}  // namespace
}  // namespace oar
