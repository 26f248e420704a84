// Every program of every test is verified after each compiler pass, in optimised builds too.
#include <gtest/gtest.h>

#include <cstdlib>

#include "oar/base/flags.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!std::getenv("OAR_VERIFY_PASSES")) oar::set_flag("verify_passes", "true");
  return RUN_ALL_TESTS();
}
