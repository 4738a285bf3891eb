# SPDX-License-Identifier: Apache-2.0
"""A double of Riva's speech services: their real protocol over gRPC on loopback, with answers of the test's choice."""

from __future__ import annotations

import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

import grpc
from riva.client.proto import riva_asr_pb2, riva_asr_pb2_grpc, riva_tts_pb2, riva_tts_pb2_grpc

Hear = Callable[[Any], str]
Refuse = Callable[[Any, int], tuple[grpc.StatusCode, str] | None]


class RivaServer:
    """Both services on a free port. `hear` gives the transcript of a RecognizeRequest; `refuse` (request, how many
    came before) a status to fail with. A text is spoken as 100 samples a sign."""

    def __init__(self, hear: Hear = lambda _: "heard", refuse: Refuse = lambda *_: None, *, port: int = 0) -> None:
        self.requests: list[Any] = []
        self.metadata: list[dict[str, str]] = []
        self.hear, self.refuse = hear, refuse
        self._server = grpc.server(ThreadPoolExecutor(8))
        riva_asr_pb2_grpc.add_RivaSpeechRecognitionServicer_to_server(_Asr(self), self._server)
        riva_tts_pb2_grpc.add_RivaSpeechSynthesisServicer_to_server(_Tts(self), self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        self.address = f"127.0.0.1:{self.port}"
        self._server.start()

    def __enter__(self) -> RivaServer:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.stop(None).wait()

    def came(self, request: Any, context: grpc.ServicerContext) -> None:
        before = len(self.requests)
        self.requests.append(request)
        self.metadata.append(dict(context.invocation_metadata()))
        if (status := self.refuse(request, before)) is not None:
            context.abort(*status)


class _Asr(riva_asr_pb2_grpc.RivaSpeechRecognitionServicer):
    def __init__(self, server: RivaServer) -> None:
        self._server = server

    def Recognize(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._server.came(request, context)
        answer = riva_asr_pb2.RecognizeResponse()
        for part in filter(None, self._server.hear(request).split("|")):
            heard = answer.results.add().alternatives.add(transcript=f"{part} ", confidence=0.9)
            if request.config.enable_word_time_offsets:
                for number, word in enumerate(part.split()):
                    heard.words.add(word=word, start_time=250 * number, end_time=250 * number + 200)
        return answer

    def GetRivaSpeechRecognitionConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        return riva_asr_pb2.RivaSpeechRecognitionConfigResponse()


class _Tts(riva_tts_pb2_grpc.RivaSpeechSynthesisServicer):
    def __init__(self, server: RivaServer) -> None:
        self._server = server

    def Synthesize(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._server.came(request, context)
        samples = 100 * len(request.text)
        return riva_tts_pb2.SynthesizeSpeechResponse(audio=struct.pack(f"<{samples}h", *([7] * samples)))
