"""Tells catkin where the Python packages are; not for use with pip."""

from catkin_pkg.python_setup import generate_distutils_setup
from setuptools import setup

setup(**generate_distutils_setup(packages=["iter_runner"], package_dir={"": "src"}))
