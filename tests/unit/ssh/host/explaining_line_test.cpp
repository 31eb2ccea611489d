// SPDX-License-Identifier: MIT
// Which line of an output's end explains it: each line that explains nothing, and each mark of a
// victim.
#include "ssh/host/explaining_line.h"

#include <gtest/gtest.h>

#include <string>

namespace dtool::host {
namespace {

TEST(ExplainingLine, IsTheLastOneThatIsNotBlank) {
  EXPECT_EQ(explaining_line(""), "");
  EXPECT_EQ(explaining_line("one\ntwo\n\n   \n"), "two");
  EXPECT_EQ(explaining_line("one\nwithout an end"), "without an end");
  EXPECT_EQ(explaining_line("one\n\xe7\x81\xbd\n"), "\xe7\x81\xbd");
  EXPECT_EQ(explaining_line("=====\n"), "=====") << "there is no other";
  EXPECT_EQ(explaining_line("items[3]: out of range\n"), "items[3]: out of range");
  EXPECT_EQ(explaining_line("[rank3]: out of range\n"), "out of range");
  EXPECT_EQ(explaining_line("[rank3]:out of range\n"), "out of range");
  EXPECT_EQ(explaining_line("[rank 3 is late\n"), "[rank 3 is late");
  EXPECT_EQ(explaining_line("=====\n\n   \n"), "=====") << "blank lines are no lines";
  EXPECT_EQ(explaining_line("  more\n=====\n"), "  more");
  EXPECT_EQ(explaining_line("one\n\x7f\n"), "one") << "no letter";
  EXPECT_EQ(explaining_line("one\n\x80\n"), "\x80");
}

TEST(ExplainingLine, IsCut) {
  const std::string line = explaining_line("x" + std::string(500'000, 'y') + "\n");
  EXPECT_EQ(line.size(), 500U);
  EXPECT_TRUE(line.starts_with("xy") && line.ends_with("y...")) << line;
  EXPECT_EQ(explaining_line(std::string(500, 'y')), std::string(500, 'y'));
  EXPECT_EQ(explaining_line(std::string(501, 'y')), std::string(497, 'y') + "...");
}

TEST(Exceptions, AreKnownByTheirNames) {
  for (const std::string line :
       {"ValueError: sick", "torch.OutOfMemoryError: CUDA", "my_module.My2Exception: x",
        "KeyboardInterrupt", "Error: x", "_Error"})
    EXPECT_TRUE(is_exception(line)) << line;
  for (const std::string line :
       {"", ": x", "an Error: x", "a-Error: x", "UserWarning: x", "ErrorLog: x", "x: ValueError",
        "\xc3\xbc"
        "Error: x"})
    EXPECT_FALSE(is_exception(line)) << line;
}

TEST(ExplainingLine, IsNotOneThatExplainsNothing) {
  for (const std::string line : {
           "============================================================",
           "--------------------",
           "    ~~~~^^^^",
           "For simplicity, JAX has removed its internal frames from the traceback of the "
           "following",
           "The stack trace below excludes JAX-internal frames.",
           "The preceding is the original exception that occurred, unmodified.",
           "The above exception was the direct cause of the following exception:",
           "During handling of the above exception, another exception occurred:",
           "CUDA kernel errors might be asynchronously reported at some other API call",
           "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
           "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
           "Search for `cudaErrorAssert' in https://docs.nvidia.com/",
           "Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace",
           "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.",
           "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
           "Exception raised from checkTimeout at ProcessGroupNCCL.cpp:632",
           "frame #12: clone + 0x44 (0x7f2c in /usr/lib/libc.so.6)",
           "terminate called after throwing an instance of 'c10::DistBackendError'",
           "terminate called without an active exception",
           "Fatal Python error: Aborted",
           "Extension modules: numpy.core._multiarray_umath (total: 30)",
           "Thread 0x00007f1c (most recent call first):",
           "Current thread 0x00007f1c (most recent call first):",
           "  File \"/usr/lib/python3/threading.py\", line 324 in wait",
           "  warnings.warn('resource_tracker: There appear to be leaked objects')",
           "Aborted (core dumped)",
           "wandb: Find logs at: wandb/run-1/logs",
           "[notice] A new release of pip is available",
           "[W1126 22:08:01.1 ProcessGroupNCCL.cpp:1] destroy_process_group() was not called",
           "[rank1]:[W1126 22:08:01.1 ProcessGroupNCCL.cpp:1] destroy_process_group()",
           "W0000 00:00:1 cuda_executor.cc:1] no NUMA node",
           "W1126 22:08:01.1 7 api.py:1] Sending",
           "I0000 00:00:1 service.cc:1] platform Host",
           "I1126 22:08:01.1 service.cc:1] platform Host",
           "train.py:7: DeprecationWarning: distutils is deprecated",
           ": Warning: x",
           "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 1",
           "E1126 22:08:01.1 7 torch/distributed/elastic/multiprocessing/api.py:1] failed",
           "WARNING:torch.distributed.run:Setting OMP_NUM_THREADS",
           "[E 1] torch/distributed/run.py:1] failed",
           "WARNING: Sending process 7 closing signal SIGTERM",
       })
    EXPECT_EQ(explaining_line("ValueError: sick\n" + line + "\n"), "ValueError: sick") << line;
  // What looks alike.
  for (const std::string line :
       {"UserWarning: raised", "FileNotFoundError: no file",
        "RuntimeError: torch.distributed is not initialized", "Wrong", "the Warning: light is on"})
    EXPECT_EQ(explaining_line("one\n" + line + "\n"), line);
}

TEST(ExplainingLine, IsNoLineOfATracebackButItsException) {
  const std::string frames =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\n";
  EXPECT_EQ(explaining_line("one\n" + frames), "one") << "it was cut off";
  EXPECT_EQ(explaining_line(frames + "KeyError: 'a'\n  more\n"), "  more");
  EXPECT_EQ(explaining_line("one\n" + frames + "KeyError: 'a'\n"), "KeyError: 'a'");
  EXPECT_EQ(explaining_line("one\n" + frames + "KeyError: 'a'\n" + frames + "ValueError: sick\n"),
            "ValueError: sick");
  EXPECT_EQ(explaining_line("Exception ignored in: <function f>\n" + frames + "KeyError: 'a'\n" +
                            frames + "ValueError: sick\n=====\n"),
            "ValueError: sick");
  EXPECT_EQ(explaining_line("[rank3]: Traceback (most recent call last):\n"
                            "[rank3]:   File \"a.py\", line 1, in f\n"
                            "[rank3]: ValueError: sick\n"),
            "ValueError: sick");
  EXPECT_EQ(explaining_line("ValueError: sick\nException ignored in: <function f>\n" + frames +
                            "BrokenPipeError: [Errno 32] Broken pipe\n"),
            "ValueError: sick");
  EXPECT_EQ(explaining_line("ValueError: sick\n" + frames +
                            "subprocess.CalledProcessError: Command '['python3']' returned 1.\n"),
            "ValueError: sick");
}

TEST(ExplainingLine, StandsBeforeTheSummaryOfPyTorchsLauncher) {
  // As `accelerate launch --num_processes 2` ends with PyTorch 2.15.
  EXPECT_EQ(explaining_line(
                "[rank1]: Traceback (most recent call last):\n"
                "[rank1]:   File \"fail.py\", line 8, in <module>\n"
                "[rank1]: ValueError: rank 1 has had enough\n"
                "[rank0]: RuntimeError: [pair.cc:534] Connection closed by peer [::1]:1\n"
                "E1126 22:08:01.1 7 torch/distributed/elastic/multiprocessing/api.py:1] failed\n"
                "Traceback (most recent call last):\n"
                "  File \"accelerate\", line 1, in <module>\n"
                "    raise ChildFailedError(\n"
                "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
                "============================================================\n"
                "fail.py FAILED\n"
                "Root Cause (first observed failure):\n"
                "  rank      : 1 (local_rank: 1)\n"
                "  error_file: <N/A>\n"
                "============================================================\n"),
            "ValueError: rank 1 has had enough");
}

TEST(ExplainingLine, IsTheExceptionAndNotWhatIsSaidAfterIt) {
  EXPECT_EQ(
      explaining_line("ValueError: sick\ncleaning up\n"
                      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"),
      "ValueError: sick");
  EXPECT_EQ(explaining_line("ValueError: sick\ncleaning up\n"), "cleaning up");
  EXPECT_EQ(
      explaining_line("cleaning up\n"
                      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"),
      "cleaning up")
      << "there is none";
  EXPECT_EQ(
      explaining_line("ValueError: sick\n"
                      "ConnectionResetError: [Errno 104] Connection reset by peer\n"
                      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"),
      "ValueError: sick")
      << "the other is a victim's";
}

TEST(ExplainingLine, IsThatOfTheRankWhichPyTorchsLauncherNames) {
  const auto summary = [](const std::string& rank) {
    return "[rank1]: Traceback (most recent call last):\n"
           "[rank1]: KeyError: 'the first'\n"
           "[rank0]: Traceback (most recent call last):\n"
           "[rank0]: ValueError: what followed\n"
           "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
           "Failures:\n"
           "[1]:\n"
           "  rank      : 0 (local_rank: 0)\n"
           "Root Cause (first observed failure):\n"
           "[0]:\n"
           "  rank      : " +
           rank +
           " (local_rank: 1)\n"
           "  exitcode  : 7 (pid: 12)\n";
  };
  EXPECT_EQ(explaining_line(summary("1")), "KeyError: 'the first'");
  EXPECT_EQ(explaining_line(summary("2")), "ValueError: what followed") << "it said nothing";
}

TEST(Victims, AreThoseWhoseLineSaysThatAnotherIsGone) {
  for (const std::string line : {
           "RuntimeError: [pair.cc:534] Connection closed by peer [127.0.0.1]:21",
           "socket: Connection closed by remote peer h2<1>",
           "ConnectionResetError: [Errno 104] Connection reset by peer",
           "BrokenPipeError: [Errno 32] Broken pipe",
           "NCCL error: remote process exited or there was a network error",
           "ncclRemoteError: A call failed possibly due to a network error",
           "NCCL communicator was aborted on rank 1.",
           "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)",
           "what():  Process group watchdog thread terminated with exception: NCCL",
           "ProcessGroupNCCL's watchdog got stuck for 480 seconds",
           "failed to recv, got 0 bytes. Connection was likely closed.",
           "Application timeout caused pair closure",
           "torch.distributed.DistStoreError: Timed out waiting for clients",
           "Timed out after 61 seconds. 1/2 clients joined.",
           "Timed out waiting 1800000ms for recv operation to complete",
           "Timed out waiting 1800000ms for send operation to complete",
           "The client socket has timed out after 60s while trying to connect to (h1, 1)",
           "UNAVAILABLE: tasks are unhealthy (stopped sending heartbeats)",
           "This most likely indicates that another task died",
           "DEADLINE_EXCEEDED: Barrier timed out. Id: shutdown",
       })
    EXPECT_TRUE(marks_a_victim(line)) << line;
  EXPECT_FALSE(marks_a_victim("ValueError: sick"));
}

}  // namespace
}  // namespace dtool::host
