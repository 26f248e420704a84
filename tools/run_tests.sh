#!/usr/bin/env bash
# Runs test suites of one build and ends with each runner's closing line.
#
#   tools/run_tests.sh <preset> <suite>...     suites: cpp, threads, package, python, avx2, fuzz, files, deploy
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1
shift
build=build
[ "$preset" = release ] || build=build-$preset
logs=$build/test-logs
mkdir -p "$logs"

# Test processes share the cores: a thread that waits must give its core away, not spin on it.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}

failed=0
summary=()

# run <name> <pattern of the closing lines> <command>...
run() {
  local name=$1 pattern=$2 status=0 closing
  shift 2
  echo "== $preset: $name"
  # The log has everything; the screen does without GoogleTest's lines about each test that passes.
  "$@" 2>&1 | tee "$logs/$name.log" |
    sed -u -E '/^($|\[ RUN |\[       OK |\[-----|Running main)/d' || status=$?
  closing=$(grep -E "$pattern" "$logs/$name.log" | tail -n 1 || true)
  # A runner that says nothing at its end, or that ran no test, has not passed.
  [ "$status" -eq 0 ] && [ -n "$closing" ] || failed=1
  summary+=("$preset $name: ${closing:-no closing line} (exit status $status)")
}

skip() {
  summary+=("$preset $1: skipped, $2")
}

for suite in "$@"; do
  case $suite in
    cpp)
      if [ -x "$build/bin/oar_tests" ]; then
        run cpp '^\[  PASSED  \] [0-9]+ test|^ *[0-9]+ FAILED TEST' "$build/bin/oar_tests"
      else
        skip cpp "there are no C++ tests"
      fi
      ;;
    threads)
      # What several threads do at once, by the names of tests and suites. A fork takes every lock first, and the sanitizer can
      # check the order of 64 at most, so forks are tested without that.
      threads_passed='^\[  PASSED  \] [1-9][0-9]* test|^ *[0-9]+ FAILED TEST'
      run threads "$threads_passed" "$build/bin/oar_tests" \
        --gtest_filter='*Thread*:*Parallel*:*Async*:*Callers*:*Stream*:Allocator*:Branches*:Conformance*:Device*:FreeList*:Instance*:Intrusive*:MemoryPlanOfLanes*:Segments*:-*Fork*:*DeathTest*'
      TSAN_OPTIONS="$TSAN_OPTIONS:detect_deadlocks=0" run forks "$threads_passed" "$build/bin/oar_tests" \
        --gtest_filter='*Fork*:-*DeathTest*'
      ;;
    package)
      run package 'tests passed|tests failed' \
        ctest --test-dir "$build" --output-on-failure --exclude-regex '^oar_tests$'
      ;;
    python)
      if [ -n "$(find tests/python -name 'test_*.py' -print -quit 2>/dev/null)" ]; then
        run python '(passed|failed|error).* in [0-9.]+s' \
          .venv/bin/python -m pytest -q -n "${OAR_TEST_JOBS:-2}" --dist worksteal tests/python
      else
        skip python "there are no Python tests"
      fi
      ;;
    avx2)
      # Values and derivatives of every op again, with the kernels of machines that have no more than AVX2.
      OAR_CPU_ISA=avx2 run avx2 '(passed|failed|error).* in [0-9.]+s' \
        .venv/bin/python -m pytest -q -n "${OAR_TEST_JOBS:-2}" --dist worksteal \
        tests/python/test_registry_values.py tests/python/test_registry_derivatives.py tests/python/test_numerics.py
      ;;
    fuzz)
      # Random calls of every op and random programs. A huge request is an error there, not the end of the process.
      read -ra fuzz_args <<< "${FUZZ_ARGS:-}"
      export ASAN_OPTIONS="$ASAN_OPTIONS:allocator_may_return_null=1:max_allocation_size_mb=4096:detect_leaks=0"
      for target in calls executor; do
        run "fuzz-$target" 'cases, .* complaints' "$build/bin/oar_fuzz_$target" "${fuzz_args[@]}"
      done
      ;;
    files)
      # Damaged files of every format.
      for target in "$build"/bin/oar_fuzz_*; do
        case $target in *_calls | *_executor) continue ;; esac
        run "$(basename "$target" | tr _ - | sed s/^oar-//)" '^[0-9]+ inputs, no failure' "$target" "${FUZZ_COUNT:-100000}"
      done
      ;;
    deploy)
      # What the runtime library contains, how large it is, and that it reads the quickstart's digits as Python does.
      case $preset in
        deploy)
          run parts '^parts: ok' .venv/bin/python tools/check_parts.py runtime \
            "$build/lib/liboar_runtime.so" --most-bytes 4000000
          ;;
        deploy-all)
          # The kernels of all families, which needs no oneDNN.
          run parts '^parts: ok' .venv/bin/python tools/check_parts.py runtime \
            "$build/lib/liboar_runtime.so" --most-bytes 8000000
          ;;
        aarch64)
          run parts '^parts: ok' .venv/bin/python tools/check_parts.py runtime \
            "$build/lib/liboar_runtime.so" --tools aarch64-linux-gnu-
          ;;
      esac
      case $preset in
        aarch64) command="qemu-aarch64 -L /usr/aarch64-linux-gnu $build/bin/oar_run" ;;
        wasm) command="node $build/bin/oar_run.js" ;;
        *) command=$build/bin/oar_run ;;
      esac
      run digits 'digits as in Python' .venv/bin/python tools/test_deploy.py --run "$command" --model build/quickstart
      case $preset in
        deploy | deploy-all)
          run root '^minimal root: ' .venv/bin/python tests/deploy/minimal_root.py "$build" --model build/quickstart
          ;;
      esac
      ;;
    *)
      echo "run_tests.sh: '$suite' is not one of cpp, threads, package, python, avx2, fuzz, files, deploy" >&2
      exit 2
      ;;
  esac
done

echo
echo "== closing lines"
# The fuzzers follow the tests of the same build, whose lines stay.
case " $* " in *" fuzz "* | *" files "*) lines=$logs/closing-lines-fuzz ;; *) lines=$logs/closing-lines ;; esac
printf '%s\n' "${summary[@]}" | tee "$lines"
exit "$failed"
