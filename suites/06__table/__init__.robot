*** Settings ***
Documentation    Promises about the connection table: how many connections it holds, how steady it is, how fast it drains,
...              and what happens when it is full. The DUT's own count is compared with the generator's.
