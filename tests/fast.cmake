# SPDX-License-Identifier: MIT
# Included by ctest: the label `fast` for the tests of GoogleTest, whose discovery takes one label only.
set_tests_properties(${unit_tests_TESTS} ${sync_tests_TESTS} PROPERTIES LABELS "unit;fast")
set_tests_properties(${fuzz_tests_TESTS} PROPERTIES LABELS "fuzz;fast")
