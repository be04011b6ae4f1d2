"""Connects to platforms.

An adapter converts events to `Inbound`, and sends answers with a `Reply`.
"""
