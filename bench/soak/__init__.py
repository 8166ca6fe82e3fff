"""Ordinary applications beside a hostile tenant, for half an hour: does anything of it reach them?"""
