# SPDX-License-Identifier: Apache-2.0
"""What a reply answers: without its reasoning, and without what a model goes on with after its own end.

The tables of marks stand here and nowhere else: solvers, graders, judges, rewards, training data and the viewer read
replies by these functions. Sources: chat templates of the models named, and the reasoning parsers of vLLM and SGLang.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_TAGS_OF_PROMPTS = ("thinking", "reasoning", "thought")
"""Tags that prompts ask for and stories use, too: a whole pair hides what is inside, not what stands before it."""
_TAGS = (
    "think",  # DeepSeek-R1, Qwen3, GLM-4.5, Nemotron, Kimi K2, MiniMax M2, OLMo 3, …
    "seed:think",  # Seed-OSS
    "mm:think",  # MiniMax M3
    "think:opensource",  # Hunyuan 3
    "longcat_think",  # LongCat
    "think_fast",  # K2-V2, beside think_faster
    "think_faster",
    "ifm|think",  # K2 Horizon
    "ifm|think_fast",
    "ifm|think_faster",
)
_PAIRS = (
    ("[THINK]", "[/THINK]"),  # Magistral
    ("◁think▷", "◁/think▷"),  # Kimi-VL
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),  # Kimi K3
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A Reasoning
    ("<|begin_of_thought|>", "<|end_of_thought|>"),  # Sky-T1, OpenThinker
    ("<|inner_prefix|>", "<|inner_suffix|>"),  # Apertus
    ("<|channel>", "<channel|>"),  # Gemma 4
    ("<|think|>", "<|content|>"),  # Solar Open
    ("<|think:start|>", "<|think:end|>"),  # Solar Open 2
    ("<|content_thinking|>", "<|content_text|>"),  # Inkling
    ("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),  # PLaMo 3
    ("to=self<|message|>", "to=user<|message|>"),  # Muse
    ("[unused16]", "[unused17]"),  # Pangu
    ("<unused94>", "<unused95>"),  # MedGemma
)
_OPENING = (*(f"<{tag}>" for tag in _TAGS), *(opening for opening, _ in _PAIRS))
_CLOSING = (*(f"</{tag}>" for tag in _TAGS), *(closing for _, closing in _PAIRS))
_CLOSED_BY = {opening.lower(): closing for opening, closing in zip(_OPENING, _CLOSING, strict=True)}
_BEGINNINGS = ("<|START_RESPONSE|>", "<|begin_of_solution|>", "<|open|>response<|sep|>")
"""What the answer begins with behind some of these."""
_CHANNEL = r"<\|channel\|>"
"""gpt-oss (harmony): each channel but the last, `final`, is reasoning."""
_FINAL = rf"{_CHANNEL}\s{{0,4}}final(?:\s[^<\n]{{0,80}})?(?:<\|constrain\|>[^<\n]{{0,80}})?<\|message\|>"
_STOPS = (
    *("<|im_end|>", "<|im_start|>", "<|endoftext|>"),  # ChatML: Qwen, Yi, OLMo, SmolLM, Phi-4, …
    *("<|eot_id|>", "<|eom_id|>", "<|start_header_id|>", "<|end_of_text|>", "<|begin_of_text|>"),  # Llama 3
    *("<|eot|>", "<|header_start|>"),  # Llama 4
    *("[INST]", "[SYSTEM_PROMPT]"),  # Mistral
    *("<end_of_turn>", "<start_of_turn>", "<eos>", "<turn|>", "<|turn>"),  # Gemma
    *("<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<|EOT|>"),  # DeepSeek
    *("<|user|>", "<|assistant|>", "<|system|>", "<|observation|>"),  # GLM, Phi-3, Zephyr, Granite
    *("<|end_of_role|>", "<|start_of_role|>"),  # Granite
    *("<|END_OF_TURN_TOKEN|>", "<|START_OF_TURN_TOKEN|>", "<|END_RESPONSE|>", "<|end_of_solution|>"),  # Command, …
    *("[|endofturn|]", "[|user|]", "[|assistant|]", "[|system|]", "<|endofturn|>"),  # EXAONE, HyperCLOVA
    *("<|im_user|>", "<|im_system|>", "<|im_assistant|>", "[EOS]", "[EOT]"),  # Kimi
    *("<|close|>response<|sep|>", "<|close|>message<|sep|>", "<|end_of_msg|>", "<|open|>message"),  # Kimi K3
    *("[e~[", "]~b]", "]~!b["),  # MiniMax
    *("<seed:eos>", "<seed:bos>"),  # Seed-OSS
    *("<|role_end|>", "<role>HUMAN</role>"),  # Ling
    *("<|user_start|>", "<|assistant_start|>", "<|assistant_end|>"),  # Apertus
    *("<｜hy_User｜>", "<｜hy_User:opensource｜>", "<｜hy_eos｜>", "<｜hy_eos:opensource｜>"),  # Hunyuan
    *("<|return|>", "<|message_user|>", "<|content_model_end_sampling|>", "<|plamo:tag|>"),
    *("<end_of_utterance>", "<|eos|>", "<|eod|>", "<extra_id_1>", "<reserved_106>", "<_user>", "<|stop|>"),
)
_CONTINUED = r"<\|(?:end|eom|end_message)\|>(?!\s*<\|(?:start|begin)\|>\s*assistant|\s*<\|message_model\|>)"
"""Ends of messages; the reply ends there unless its next message follows."""
_OTHERS_TURN = r"<\|start\|>\s*(?:user|system|developer)"


def _one_of(texts: tuple[str, ...]) -> str:
    """Return a pattern for any of `texts`; those that begin alike share their beginning, since most texts have `<`
    often."""
    rests: dict[str, list[str]] = {}
    for text in sorted(texts, key=len, reverse=True):
        rests.setdefault(text[:2], []).append(re.escape(text[2:]))
    return "|".join(f"{re.escape(head)}(?:{'|'.join(tails)})" for head, tails in rests.items())


_PAIR = "|".join(_TAGS_OF_PROMPTS)
_THOUGHT = re.compile(
    rf"(?P<close>(?i:(?:{_one_of(_CLOSING)})(?:\s{{0,4}}(?:{_one_of(_BEGINNINGS)}))?|{_one_of(_BEGINNINGS)})|{_FINAL})|(?P<open>(?i:{_one_of(_OPENING)})|{_CHANNEL})"
    rf"|(?i:</(?P<close_pair>{_PAIR})>|<(?P<open_pair>{_PAIR})>)"
)
_MARK = re.compile(
    rf"(?=[<◁\[\]]|to=)(?:{_THOUGHT.pattern}|(?P<stop>{_one_of(_STOPS)}|{_CONTINUED}|{_OTHERS_TURN})"
    r"|(?P<end></s>)|(?P<strike><s>))"
)
_BRACKETED = re.compile(r"\[(?:/?THINK\]|INST\]|SYSTEM_|\||e~\[|EO|unused)")
_QUOTES = {"`": "`", "'": "'", '"': '"', "“": "”", "‘": "’"}
_CLOSES = ("close", "close_pair")
_WITHOUT_TOKENS = re.compile(r"\s*(?:analysis|commentary)(?=[A-Z\"'*(\\$])")
"""How a reply of gpt-oss begins that was decoded without its special tokens."""
_FINAL_WITHOUT_TOKENS = "assistantfinal"
_IN_WORDS = re.compile(r"\s*Here(?:'s| is) my thought process:")
"""Granite 3.2. Other models write this, too, so that it is reasoning only where the words for its end follow."""
_END_IN_WORDS = "Here is my response:"
_MAY_BEGIN_IN_WORDS = re.compile(r"\s*(?:analysis|commentary|Here)")


class _ReplySpan(NamedTuple):
    """Where the answer stands.

    start      behind the last mark that ends reasoning; 0 where there is none
    end        before the mark of a chat template that ends the reply
    kept       visible text from before `start`
    open_at    where reasoning without an end begins, else -1
    closed_at  where the last mark that ends reasoning begins
    """

    start: int
    end: int
    kept: str
    open_at: int
    closed_at: int


def after_thinking(text: str) -> str | None:
    """Return what a reply answers, behind its reasoning and up to its own end; None where the reasoning never ended.

    >>> after_thinking("<think>2 + 2</think> 4<|im_end|> And 5?"), after_thinking("[THINK]maybe 4, but")
    (' 4', None)
    """
    if not _may_have_marks(text):
        return _after_words(text)
    span = _read_marks(text)
    if span.open_at >= 0:
        return None
    answer = span.kept + text[span.start : span.end]
    if span.start:
        return answer
    return _after_words(answer)


def without_thinking(text: str) -> str:
    """Return the answer of a reply, stripped; empty where the reasoning never ended."""
    return (after_thinking(text) or "").strip()


def split_thinking(text: str) -> tuple[str, str]:
    """Return the reasoning of a reply and what it says behind it, run-on included, without the marks of reasoning.

    >>> split_thinking("<think>2 + 2</think>\\n4"), split_thinking("<think>2 +"), split_thinking("4")
    (('2 + 2', '4'), ('2 +', ''), ('', '4'))
    """
    if not _may_have_marks(text):
        return "", text
    span = _read_marks(text)
    if span.open_at >= 0:
        reasoning, answer = text, ""
    elif span.start:
        reasoning, answer = text[: span.closed_at], (span.kept + text[span.start :]).lstrip("\n")
    else:
        return "", text
    reasoning = reasoning.lstrip()
    opening = _THOUGHT.match(reasoning)
    if opening is not None and opening.lastgroup not in _CLOSES:
        reasoning = reasoning[opening.end() :]
    return reasoning.strip("\n"), answer


def has_ended_thinking(text: str) -> bool:
    """Return whether a reply has reasoning, all of which ended."""
    span = _read_marks(text)
    if span.start or span.open_at >= 0:
        return span.open_at < 0
    return _after_words(text) not in (None, text)


def thinks_once(text: str) -> bool:
    """Return whether a reply is one reasoning that ends, then an answer; templates often write its opening mark.

    >>> thinks_once("<think>2 + 2</think> 4"), thinks_once("2 + 2</think>"), thinks_once("4")
    (True, False, False)
    """
    marks = list(_reasoning_marks(text, 0))
    if not marks or marks[-1].lastgroup not in _CLOSES or not text[marks[-1].end() :].strip():
        return False
    openings = marks[:-1]
    return not openings or (len(openings) == 1 and _begins_text(openings[0], text))


def _begins_text(mark: re.Match[str], text: str) -> bool:
    """Return whether a text begins with this mark, which opens reasoning."""
    return mark.lastgroup not in _CLOSES and not text[: mark.start()].strip()


def join_turns(turns: Sequence[str], between: str = "") -> str:
    """Return the texts of a model's turns as one reply, the reasoning of each ended with its turn.

    Reasoning that the last turn began and never ended stays open.

    >>> join_turns(["<think>I call the tool", "It is 4."], "\\n")
    '<think>I call the tool</think>\\nIt is 4.'
    """
    return between.join([*map(_with_end_mark, turns[:-1]), *turns[-1:]])


def _with_end_mark(text: str) -> str:
    """Return a text with the mark that ends its open reasoning."""
    open_at = _read_marks(text).open_at
    if open_at < 0:
        return text
    opening = _THOUGHT.match(text, open_at)
    closing = ""
    if opening is not None:
        closing = _CLOSED_BY.get(opening[0].lower(), "</think>")
    return f"{text}{closing}"


def after_first_thinking(text: str, fence: str) -> str | None:
    """Return what follows the first reasoning of a reply with a program, which may itself hold such marks.

    None where the reasoning never ended. A mark behind a `fence` begins none.
    """
    thoughts = _reasoning_marks(text, 0)
    mark = next(thoughts, None)
    if mark is not None and mark.lastgroup not in _CLOSES:
        fenced = 0 <= text.find(fence) < mark.start()
        mark = next((later for later in thoughts if later.lastgroup in _CLOSES), None)
        if mark is None and not fenced:
            return None
    answer = text[mark.end() :] if mark is not None else _after_words(text)
    if answer is None:
        return None
    return answer[: _own_end(answer)]


def _own_end(answer: str) -> int:
    """Return where the first mark of a chat template ends a text without reasoning."""
    for mark in _MARK.finditer(answer):
        if mark.lastgroup in ("stop", "end") and not _is_quoted(answer, mark) and answer[: mark.start()].strip():
            return mark.start()
    return len(answer)


def _read_marks(text: str) -> _ReplySpan:
    """Read the marks of a text once.

    `</s>` behind `<s>` strikes text out. A stop mark before the end of a reasoning that the prompt has begun belongs to
    that reasoning.
    """
    start, end, open_at, closed_at = 0, len(text), -1, 0
    kept: list[str] = []
    begins_in_prompt_until = last = 0
    struck = says_something = False
    for mark in _MARK.finditer(text):
        kind = mark.lastgroup
        if _is_quoted(text, mark):
            continue
        says_something = says_something or bool(text[last : mark.start()].strip())
        last = mark.end()
        if kind in ("open", "open_pair"):
            if open_at < 0:
                open_at = mark.start()
        elif kind in _CLOSES:
            whole_pair = kind == "close_pair" and open_at >= 0
            if whole_pair:
                kept.append(text[start:open_at])
            else:
                kept.clear()
            start, open_at, closed_at, says_something = mark.end(), -1, mark.start(), bool(kept)
        elif kind == "strike":
            struck = True
        elif open_at < 0 and says_something and not (kind == "end" and struck):
            if not start and mark.start() >= begins_in_prompt_until:
                following = next(_reasoning_marks(text, mark.end()), None)
                if following is not None and following.lastgroup in _CLOSES:
                    begins_in_prompt_until = following.start()
            if mark.start() >= begins_in_prompt_until:
                end = mark.start()
                break
    return _ReplySpan(start, end, "".join(kept), open_at, closed_at)


def _may_have_marks(text: str) -> bool:
    """Return whether a text has what each mark has; a quick look, since most texts have none."""
    if "<" in text or "◁" in text:
        return True
    return _BRACKETED.search(text) is not None or "]~" in text


def _reasoning_marks(text: str, start: int) -> Iterator[re.Match[str]]:
    """Return the marks of reasoning from `start` on, without quoted ones."""
    return (mark for mark in _THOUGHT.finditer(text, start) if not _is_quoted(text, mark))


def _is_quoted(text: str, mark: re.Match[str]) -> bool:
    """Return whether a mark stands between quotes, no fences: it is spoken of, and marks nothing."""
    before = text[max(mark.start() - 3, 0) : mark.start()]
    closing = _QUOTES.get(before[-1:])
    return closing is not None and before != "```" and text[mark.end() : mark.end() + 1] == closing


def _after_words(text: str) -> str | None:
    """Return what `after_thinking` does, where words alone mark the reasoning."""
    if _MAY_BEGIN_IN_WORDS.match(text) is None:
        return text
    if _WITHOUT_TOKENS.match(text):
        _, ended, answer = text.rpartition(_FINAL_WITHOUT_TOKENS)
        if ended:
            return answer
        return None
    if _IN_WORDS.match(text):
        return text.partition(_END_IN_WORDS)[2] or text
    return text
