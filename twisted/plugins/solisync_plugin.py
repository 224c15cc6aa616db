"""What makes `twistd solisync` exist; imported by every twistd command, so it holds nothing but this."""

from twisted.application.service import ServiceMaker

solisync = ServiceMaker("solisync", "solisync.tap", "The HTTP backend of a solitaire game.", "solisync")
