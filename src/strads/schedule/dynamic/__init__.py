"""Schedules made while a program runs: priorities, dependencies, and the pipeline of rounds."""
