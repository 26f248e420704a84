"""Cases that test the driver itself: `bench.py --suite selftest --as-torch`.

ME is the role of the process; only "oar" misbehaves.  Expected: equal about 1.0x,
half_speed about 0.5x, wrong WRONG, the others an error and a restarted worker.
"""

CASES = []
A = [("randn", "64,64")]


def case(name, text, **more):
    CASES.append(dict(dict(name=name, family="selftest", inputs=A, p=text, t=text, small={}, grad="", check="close",
                           tol=1e-3, bf16=False, setup_p="", setup_t="", note=""), **more))


case("equal", "a + a")
case("half_speed", "(time.sleep(0.002 if ME == 'oar' else 0.001), a)[1]")
case("wrong", "a * (1.01 if ME == 'oar' else 1.0)")
case("wrong_shape", "a[0] if ME == 'oar' else a")
case("raises", "a + undefined_name if ME == 'oar' else a")
case("aborts", "os.abort() if ME == 'oar' else a")
case("exits", "os._exit(3) if ME == 'oar' else a")
case("hangs", "time.sleep(1e6) if ME == 'oar' else a", timeout=4)
case("aborts_when_timed", "(lambda: (calls.append(1), os.abort() if ME == 'oar' and len(calls) > 40 else a)[1])()",
     setup_p="calls = []", setup_t="calls = []")
case("equal_after_restarts", "a * a")
