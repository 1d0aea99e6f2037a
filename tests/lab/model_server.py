"""A stand-in for the models the agents talk to, on loopback, so that the real agents run real turns offline.

    python model_server.py [--loopback-up]      prints its port, then serves until it is ended

It speaks Anthropic Messages, OpenAI Responses, OpenAI chat completions and Gemini, streaming. A word in the last
thing the user said picks the answer: see `decide`. It knows the agents' tools by name and nothing of how the agents are run.
"""

from __future__ import annotations

import fcntl
import gzip
import itertools
import json
import re
import socket
import struct
import sys
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import zstandard

SLOW = 600.0  # seconds: longer than any test waits before it cancels
PAUSE = 1.5  # seconds: long enough to be looked at while it works
THOUGHT = 0.3  # seconds: no model answers at once, and a state is to be seen by those who read it from a file
PIECE = 24  # characters of one streamed delta

Json = dict[str, Any]


@dataclass(frozen=True)
class Say:
    """A reply in words."""

    text: str


@dataclass(frozen=True)
class Call:
    """A tool to call: shell, question, plan or subagent, by whatever name the agent has for it."""

    tool: str


@dataclass(frozen=True)
class Fail:
    """An answer with HTTP status 400."""

    message: str


def decide(said: str, *, answered: bool) -> tuple[float, Say | Call | Fail]:
    """Return how many seconds to wait, and what to answer. `answered`: a tool's result came after what was said."""
    words = set(re.findall(r"[a-z]+", said.lower()))
    if answered:
        return THOUGHT, Say("All done.")
    if "fail" in words:
        return THOUGHT, Fail("mock failure")
    for word, tool in (("touch", "shell"), ("ask", "question"), ("plan", "plan"), ("subagent", "subagent")):
        if word in words:
            return THOUGHT, Call(tool)
    if "query" in words:
        return THOUGHT, Say("I can do A or B. Which one do you want?")
    if "number" in words:
        return THOUGHT, Say("4;1;50 pong")  # what a terminal may take for a progress report of ConEmu's
    if "long" in words:
        return THOUGHT, Say("line of text, word by word. " * 400)
    return (SLOW if "slow" in words else PAUSE if "pause" in words else THOUGHT), Say("pong")


QUESTION = {
    "question": "Which color?",
    "header": "Color",
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}
COMMAND = "touch probe.txt"
ESCALATED = {"sandbox_permissions": "require_escalated", "justification": "create the probe file"}

_numbers = itertools.count(1)


def name(kind: str) -> str:
    """Return an identifier that was not used before."""
    return f"{kind}_{next(_numbers):06d}"


def pieces(text: str) -> list[str]:
    return [text[i : i + PIECE] for i in range(0, len(text), PIECE)]


def text_of(content: str | list[Json] | None) -> str:
    """Return the words of a message's content, in whichever of the usual forms it is."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or [])


# --- Anthropic Messages

SEARCH = "ToolSearch"  # Claude Code offers some of its tools only to a model that searched for them


def messages_said(body: Json) -> tuple[str, bool]:
    """Return what the user said last, and whether a tool's result followed."""
    said, answered = "", False
    for message in reversed(body.get("messages") or []):
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        if message.get("role") == "assistant":
            # looking for a tool is no answer yet
            if any(part.get("name") == SEARCH for part in parts):
                answered = False
                continue
            break
        if any(part.get("type") == "tool_result" for part in parts):
            answered = True
            continue
        for part in parts:
            text = part.get("text", "")
            # reminders that the agent adds are long or in tags
            if part.get("type") == "text" and len(text) < 200 and not text.lstrip().startswith("<"):
                said = said or text
    return said, answered


def messages_call(tool: str, tools: set[str]) -> Json | None:
    """Return the content block that calls Claude Code's tool, or None where it offers none."""
    named: dict[str, tuple[str, Json]] = {
        "shell": ("Bash", {"command": COMMAND, "description": "Create probe file"}),
        "question": ("AskUserQuestion", {"questions": [{**QUESTION, "multiSelect": False}]}),
        "plan": ("ExitPlanMode", {"plan": "1. do it"}),
        "subagent": (
            "Task" if "Task" in tools else "Agent",
            {"description": "Look around", "prompt": "pause please", "subagent_type": "general-purpose"},
        ),
    }
    called, arguments = named[tool]
    if called not in tools and SEARCH in tools:  # it is there, and offered when it was asked for
        called, arguments = SEARCH, {"query": f"select:{called}", "max_results": 1}
    if called not in tools:
        return None
    return {"type": "tool_use", "id": name("toolu"), "name": called, "input": arguments}


# --- OpenAI chat completions


def chat_call(tool: str, tools: set[str]) -> tuple[str, Json] | None:
    """Return name and arguments of OpenCode's, pi's or Copilot's tool, or None where it offers none."""
    named: dict[str, tuple[str, Json]] = {
        "shell": ("bash", {"command": COMMAND, "description": "Create probe file"}),
        "question": ("question", {"questions": [QUESTION]}),
        "subagent": (
            "task",
            {"description": "Look around", "prompt": "pause please", "subagent_type": "general"},
        ),
    }
    if tool == "question" and "ask_user" in tools:
        color = {"type": "string", "enum": [option["label"] for option in QUESTION["options"]]}
        schema = {"type": "object", "properties": {"color": color}, "required": ["color"]}
        return "ask_user", {"message": QUESTION["question"], "requestedSchema": schema}
    found = named.get(tool)
    return found if found and found[0] in tools else None


# --- Gemini


def gemini_said(contents: list[Json]) -> tuple[str, bool]:
    """Return what the user said last, and whether a tool's result followed."""
    for content in reversed(contents):
        parts = content.get("parts") or []
        if any("functionResponse" in part for part in parts):
            return "", True
        # what the agent adds by itself is long or in tags
        said = [
            p["text"]
            for p in parts
            if len(p.get("text", "")) < 200 and not p.get("text", "<").startswith("<")
        ]
        if content.get("role") == "user" and said:
            return said[-1], False
    return "", False


def gemini_call(tool: str, tools: set[str]) -> Json | None:
    """Return the part that calls Gemini CLI's tool, or None where it offers none."""
    named: dict[str, tuple[str, Json]] = {
        "shell": ("run_shell_command", {"command": COMMAND, "description": "Create probe file"}),
        "question": ("ask_user", {"questions": [{**QUESTION, "type": "choice"}]}),
    }
    called, arguments = named.get(tool, ("", {}))
    return {"functionCall": {"name": called, "args": arguments}} if called in tools else None


# --- OpenAI Responses


def responses_said(items: list[Json]) -> tuple[str, bool]:
    """Return what the user said last, and whether a tool's result followed."""
    answered = bool(items) and str(items[-1].get("type")).endswith("_call_output")
    for item in reversed(items):
        if item.get("type") == "message" and item.get("role") == "user":
            return text_of(item.get("content")), answered
    return "", answered


def responses_call(tool: str, body: Json) -> Json | None:
    """Return the item that calls Codex's tool, which newer versions do from a script, or None where it has none."""
    question = {"questions": [{"id": "color", **QUESTION}]}
    tools = {t.get("name") or t.get("type") for t in body.get("tools") or []}
    scripted = any(
        t.get("name") == "exec"
        for item in body.get("input") or []
        if item.get("type") == "additional_tools"
        for space in item["tools"]
        for t in space.get("tools", [space])
    )
    if scripted:
        calls = {
            "shell": f"tools.exec_command({json.dumps({'cmd': COMMAND, **ESCALATED})})",
            "question": f"tools.request_user_input({json.dumps(question)})",
        }
        if tool not in calls:
            return None
        script = f"const r = await {calls[tool]}; text(JSON.stringify(r));"
        return {
            "type": "custom_tool_call",
            "id": name("ctc"),
            "call_id": name("call"),
            "name": "exec",
            "input": script,
        }
    named: dict[str, list[tuple[str, Json]]] = {
        "shell": [
            ("shell_command", {"command": COMMAND, "with_escalated_permissions": True, **ESCALATED}),
            ("exec_command", {"cmd": COMMAND, **ESCALATED}),
            ("shell", {"command": ["bash", "-lc", COMMAND], **ESCALATED}),
        ],
        "question": [("request_user_input", question)],
    }
    for called, arguments in named.get(tool, []):
        if called in tools:
            return {
                "type": "function_call",
                "id": name("fc"),
                "call_id": name("call"),
                "name": called,
                "arguments": json.dumps(arguments),
            }
    return None


class Handler(BaseHTTPRequestHandler):
    """One request of an agent."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        pass

    def do_HEAD(self) -> None:
        self.plain({})

    def do_GET(self) -> None:
        self.plain({"object": "list", "data": [], "models": []} if "models" in self.path else {})

    def do_POST(self) -> None:
        body = self.read_body()
        try:
            if self.path.startswith("/v1/messages/count_tokens"):
                self.plain({"input_tokens": 10})
            elif self.path.startswith("/v1/messages"):
                self.serve_messages(body)
            elif "/responses" in self.path:
                self.serve_responses(body)
            elif "/chat/completions" in self.path:
                self.serve_chat(body)
            elif "enerateContent" in self.path:
                self.serve_gemini(body)
            elif ":countTokens" in self.path:
                self.plain({"totalTokens": 10})
            else:
                self.plain({})
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the user cancelled the turn

    def read_body(self) -> Json:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        encoding = self.headers.get("content-encoding")
        if encoding == "gzip":
            raw = gzip.decompress(raw)
        elif encoding == "zstd":
            raw = zstandard.ZstdDecompressor().decompressobj().decompress(raw)
        try:
            body = json.loads(raw)
        except ValueError:
            return {}
        return body if isinstance(body, dict) else {}

    def plain(self, value: Json, status: int = 200) -> None:
        payload = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(payload)

    def stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def event(self, value: Json | str, kind: str | None = None) -> None:
        data = value if isinstance(value, str) else json.dumps(value)
        chunk = ((f"event: {kind}\n" if kind else "") + f"data: {data}\n\n").encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        self.wfile.flush()

    def typed(self, kind: str, **fields: Any) -> None:
        self.event({"type": kind, **fields}, kind)

    def end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def serve_messages(self, body: Json) -> None:
        tools = {tool.get("name") for tool in body.get("tools") or []}
        said, answered = messages_said(body)
        delay, answer = decide(said, answered=answered) if tools else (0, Say("pong"))
        time.sleep(delay)
        if isinstance(answer, Fail):
            error = {"type": "invalid_request_error", "message": answer.message}
            return self.plain({"type": "error", "error": error}, 400)
        text = answer.text if isinstance(answer, Say) else "pong"
        if not tools:  # asked for a title or a summary, by a schema that has some of these
            text = json.dumps(
                {"title": "Mock title", "isNewTopic": True, "state": "done", "detail": "replied"}
            )
        block: Json | None = messages_call(answer.tool, tools) if isinstance(answer, Call) else None
        usage = {
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        }
        stop = "tool_use" if block else "end_turn"
        message = {
            "id": name("msg"),
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": [block or {"type": "text", "text": text}],
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }
        if not body.get("stream"):
            return self.plain(message)
        self.stream()
        self.typed("message_start", message={**message, "content": [], "stop_reason": None})
        if block:
            self.typed("content_block_start", index=0, content_block={**block, "input": {}})
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            self.typed("content_block_delta", index=0, delta=delta)
        else:
            self.typed("content_block_start", index=0, content_block={"type": "text", "text": ""})
            for piece in pieces(text):
                self.typed("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
        self.typed("content_block_stop", index=0)
        self.typed(
            "message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage={"output_tokens": 5}
        )
        self.typed("message_stop")
        return self.end_stream()

    def serve_chat(self, body: Json) -> None:
        last = (body.get("messages") or [{}])[-1]
        tools = {(tool.get("function") or tool["custom"])["name"] for tool in body.get("tools") or []}
        said = text_of(last.get("content"))
        delay, answer = decide(said, answered=last.get("role") == "tool") if tools else (0, Say("Mock title"))
        time.sleep(delay)
        if isinstance(answer, Fail):
            error = {"type": "invalid_request_error", "message": answer.message}
            return self.plain({"error": error}, 400)
        call = chat_call(answer.tool, tools) if isinstance(answer, Call) else None
        text = answer.text if isinstance(answer, Say) else "pong"
        head = {
            "id": name("chatcmpl"),
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": body.get("model"),
        }

        def choice(delta: Json, finish: str | None = None) -> None:
            self.event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        self.stream()
        choice({"role": "assistant", "content": ""})
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            choice(
                {"tool_calls": [{"index": 0, "id": name("call"), "type": "function", "function": function}]}
            )
        else:
            for piece in pieces(text):
                choice({"content": piece})
        choice({}, "tool_calls" if call else "stop")
        self.event("[DONE]")
        return self.end_stream()

    def serve_gemini(self, body: Json) -> None:
        said, answered = gemini_said(body.get("contents") or [])
        tools = {
            t["name"] for group in body.get("tools") or [] for t in group.get("functionDeclarations", [])
        }
        delay, answer = decide(said, answered=answered) if tools else (0, Say("{}"))
        time.sleep(delay)
        if isinstance(answer, Fail):
            error = {"code": 400, "message": answer.message, "status": "INVALID_ARGUMENT"}
            return self.plain({"error": error}, 400)
        part = gemini_call(answer.tool, tools) if isinstance(answer, Call) else None
        part = part or {"text": answer.text if isinstance(answer, Say) else "pong"}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        reply = {
            "candidates": [
                {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
            ],
            "usageMetadata": usage,
        }
        if ":streamGenerateContent" not in self.path:
            return self.plain(reply)
        self.stream()
        self.event(reply)
        return self.end_stream()

    def serve_responses(self, body: Json) -> None:
        said, answered = responses_said(body.get("input") or [])
        delay, answer = decide(said, answered=answered)
        time.sleep(delay)
        if isinstance(answer, Fail):
            error = {"type": "invalid_request_error", "message": answer.message}
            return self.plain({"error": error}, 400)
        text = answer.text if isinstance(answer, Say) else "pong"
        item: Json | None = None
        if isinstance(answer, Call):
            item = responses_call(answer.tool, body)
            if answer.tool == "plan":
                text = "<proposed_plan>\n1. do it\n</proposed_plan>"
        ident = name("resp")
        response = {"id": ident, "object": "response", "status": "in_progress", "output": []}
        self.stream()
        self.typed("response.created", response=response)
        if item is None:
            item = {
                "type": "message",
                "role": "assistant",
                "id": name("msg"),
                "content": [{"type": "output_text", "text": text}],
            }
            self.typed("response.output_item.added", output_index=0, item={**item, "content": []})
            for piece in pieces(text):
                self.typed(
                    "response.output_text.delta",
                    item_id=item["id"],
                    output_index=0,
                    content_index=0,
                    delta=piece,
                )
        self.typed("response.output_item.done", output_index=0, item=item)
        usage = {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 15,
        }
        done = {**response, "status": "completed", "output": [item], "usage": usage}
        self.typed("response.completed", response=done)
        return self.end_stream()


class Server(ThreadingHTTPServer):
    """Serves each request in a thread of its own, for some of them wait."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over broken connections: an agent that is killed leaves them so. All else is a mistake of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def loopback_up() -> None:
    """Bring up the loopback interface of this network namespace. Needs to be root in it."""
    SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1  # noqa: N806 - the kernel's names
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = bytearray(struct.pack("16sH22x", b"lo", 0))
        fcntl.ioctl(any_socket, SIOCGIFFLAGS, request)
        (flags,) = struct.unpack_from("H", request, 16)
        struct.pack_into("H", request, 16, flags | IFF_UP)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)


if __name__ == "__main__":
    if "--loopback-up" in sys.argv:
        loopback_up()
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
