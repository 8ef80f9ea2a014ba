"""Code that is installed is told from the user's."""

import json
import sys
import types

import pytest

import strads
from strads.installed import is_installed_file, is_installed_module
from strads.user_code.source_location import innermost_user_line


@pytest.mark.parametrize("name", ["json.decoder", "os", "sys", "strads.dds", "numpy.linalg", "pytest"])
def test_installed_modules(name):
    assert is_installed_module(name)


@pytest.mark.parametrize("name", ["__main__", __name__, "unheard.of", "", None])
def test_modules_of_the_user(name):
    assert not is_installed_module(name)


def test_packages_of_debian_and_without_a_folder_of_their_own(monkeypatch):
    for name, file in (
        ("six", "/usr/lib/python3/dist-packages/six.py"),
        ("google.x", "/v/lib/site-packages/google/x.py"),
    ):
        module = types.ModuleType(name)
        module.__file__ = file
        monkeypatch.setitem(sys.modules, name, module)
        assert is_installed_module(name)


@pytest.mark.parametrize(
    "file", [json.decoder.__file__, strads.__file__, pytest.__file__, "<frozen importlib._bootstrap>"]
)
def test_installed_files(file):
    assert is_installed_file(file)


@pytest.mark.parametrize(
    "file", [__file__, "<stdin>", "<ipython-input-1-0>", "/home/u/my-site-packages.py", "train.py"]
)
def test_files_of_the_user(file):
    assert not is_installed_file(file)


def test_errors_are_located_in_the_line_of_the_user():
    with pytest.raises(ValueError, match="Expecting") as error:
        json.loads("{")
    assert "test_installed.py" in innermost_user_line(error.value.__traceback__)
