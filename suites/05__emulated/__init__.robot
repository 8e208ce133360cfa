*** Settings ***
Documentation    Promises about the Linux kernel in an emulated machine whose clock is its own instruction count: what a
...              packet costs is the same on every host within 0.2 %. These tests are skipped where
...              QEMU or the kernel's package is missing.

Name             Emulated
