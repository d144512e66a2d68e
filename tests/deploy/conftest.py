"""What these tests share: the small models of the web tests."""

from tests.web.conftest import models_dir as models_dir
