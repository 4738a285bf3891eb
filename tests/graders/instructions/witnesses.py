# SPDX-License-Identifier: Apache-2.0
"""For each kind of instruction a reply that follows it and one that does not, made from its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from newskills.base.records import Row

Witness = tuple[Callable[[Row], str], Callable[[Row], str]]
SAMPLES = {
    "en": "The quick brown fox jumps over the lazy dog and then runs away into the dark forest behind the house.",
    "de": "Der schnelle braune Fuchs springt über den faulen Hund und läuft danach in den dunklen Wald hinein.",
    "it": "La volpe veloce salta sopra il cane pigro e poi corre nella foresta buia senza fermarsi mai.",
    "pt": "A raposa rápida salta sobre o cão preguiçoso e depois corre para a floresta escura sem parar.",
    "fi": "Nopea ruskea kettu hyppää laiskan koiran yli ja juoksee sitten pimeään metsään pysähtymättä.",
    "sw": "Mbweha mwepesi anaruka juu ya mbwa mvivu na kisha anakimbia kwenye msitu wenye giza bila kusimama.",
    "vi": "Con cáo nâu nhanh nhẹn nhảy qua con chó lười biếng và sau đó chạy vào khu rừng tối.",
    "ru": "Быстрая коричневая лиса прыгает через ленивую собаку и затем бежит в тёмный лес.",
    "bg": "Бързата кафява лисица прескача мързеливото куче и след това тича в тъмната гора.",
    "ar": "الثعلب البني السريع يقفز فوق الكلب الكسول ثم يركض إلى الغابة المظلمة.",
    "fa": "روباه قهوه‌ای سریع از روی سگ تنبل می‌پرد و سپس به جنگل تاریک می‌دود.",
    "ur": "تیز بھوری لومڑی سست کتے کے اوپر سے چھلانگ لگاتی ہے اور پھر جنگل میں بھاگ جاتی ہے۔",
    "hi": "तेज भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है और फिर अंधेरे जंगल में भाग जाती है।",
    "mr": "वेगवान तपकिरी कोल्हा आळशी कुत्र्यावरून उडी मारतो आणि मग तो जंगलात पळून जातो.",
    "ne": "छिटो खैरो फ्याउरो अल्छी कुकुरमाथि हाम फाल्छ र त्यसपछि अँध्यारो जंगलतिर दौडिन्छ।",
    "bn": "দ্রুত বাদামী শিয়াল অলস কুকুরের উপর লাফ দেয় এবং তারপর বনে দৌড়ে যায়।",
    "pa": "ਤੇਜ਼ ਭੂਰੀ ਲੂੰਬੜੀ ਆਲਸੀ ਕੁੱਤੇ ਉੱਤੇ ਛਾਲ ਮਾਰਦੀ ਹੈ ਅਤੇ ਫਿਰ ਜੰਗਲ ਵਿੱਚ ਭੱਜ ਜਾਂਦੀ ਹੈ।",
    "gu": "ઝડપી ભૂરું શિયાળ આળસુ કૂતરા પર કૂદે છે અને પછી જંગલમાં દોડી જાય છે.",
    "ta": "விரைவான பழுப்பு நரி சோம்பேறி நாயின் மீது குதித்து பின்னர் காட்டுக்குள் ஓடுகிறது.",
    "te": "వేగవంతమైన గోధుమ నక్క సోమరి కుక్క మీదుగా దూకి తర్వాత అడవిలోకి పరుగెత్తుతుంది.",
    "kn": "ವೇಗದ ಕಂದು ನರಿ ಸೋಮಾರಿ ನಾಯಿಯ ಮೇಲೆ ಹಾರಿ ನಂತರ ಕಾಡಿಗೆ ಓಡುತ್ತದೆ.",
    "th": "สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัขขี้เกียจแล้ววิ่งเข้าไปในป่ามืด",
    "ko": "빠른 갈색 여우가 게으른 개를 뛰어넘은 다음 어두운 숲으로 달려간다.",
}


def _count(unit: str, number: str, relation: str, joiner: str = " ") -> Witness:
    """As many units as are wanted, and as many as break the relation."""

    def made(args: Row, right: bool) -> str:
        less = args[relation] == "less than"
        return joiner.join(["x", *[unit.format(**args)] * (args[number] - (less == right))])

    return (lambda args: made(args, True)), (lambda args: made(args, False))


def _times(unit: str, number: str, joiner: str = " ") -> Witness:
    return (
        lambda args: joiner.join([unit] * args[number]),
        lambda args: joiner.join([unit] * (args[number] - 1)) or "x",
    )


def _fixed(right: str, wrong: str) -> Witness:
    return (lambda args: right.format(**args)), (lambda args: wrong.format(**args))


def _nth(args: Row, first: str) -> str:
    parts = [f"Part {i}." for i in range(args["num_paragraphs"])]
    parts[args["nth_paragraph"] - 1] = f"{first}, and more."
    return "\n\n".join(parts)


IFEVAL: Mapping[str, Witness] = {
    "keywords:existence": (lambda args: ", ".join(args["keywords"]).upper(), lambda args: "nothing of it"),
    "keywords:frequency": _count("{keyword}", "frequency", "relation"),
    "keywords:forbidden_words": (
        lambda args: "Zzz.",
        lambda args: f"Zzz {args['forbidden_words'][-1].upper()}.",
    ),
    "keywords:letter_frequency": _count("{letter}", "let_frequency", "let_relation", "\n"),
    "language:response_language": (
        lambda args: SAMPLES[args["language"]],
        lambda args: SAMPLES["en" if args["language"] != "en" else "de"],
    ),
    "length_constraints:number_sentences": (
        lambda args: "It is so. " * (args["num_sentences"] - (args["relation"] == "less than")),
        lambda args: "It is so. " * (args["num_sentences"] - (args["relation"] == "at least")) or "",
    ),
    "length_constraints:number_paragraphs": _times("Text.", "num_paragraphs", "\n***\n"),
    "length_constraints:number_words": (
        lambda args: "word " * (args["num_words"] - (args["relation"] == "less than")),
        lambda args: "word " * (args["num_words"] - (args["relation"] == "at least")),
    ),
    "length_constraints:nth_paragraph_first_word": (
        lambda args: _nth(args, args["first_word"].title()),
        lambda args: _nth(args, "Quite"),
    ),
    "detectable_content:number_placeholders": _times("[name]", "num_placeholders"),
    "detectable_content:postscript": _fixed("Text.\n\n{postscript_marker} More.", "Text."),
    "detectable_format:number_bullet_lists": _times("* Point", "num_bullets", "\n"),
    "detectable_format:constrained_response": _fixed("My answer is maybe.", "My answer is perhaps."),
    "detectable_format:number_highlighted_sections": _times("*part*", "num_highlights"),
    "detectable_format:multiple_sections": (
        lambda args: "\n".join(f"{args['section_spliter']} {i + 1}\nText" for i in range(args["num_sections"])),
        lambda args: "\n".join(
            f"{args['section_spliter']} {i + 1}\nText" for i in range(args["num_sections"] - 1)
        ),
    ),
    "detectable_format:json_format": _fixed('```json\n{{"a": [1, null]}}\n```', '{{"a": [1, }}'),
    "detectable_format:title": _fixed("<<A title>>\nText", "<A title>\nText"),
    "combination:two_responses": _fixed("One\n******\nTwo", "One\n******\nOne"),
    "combination:repeat_prompt": (
        lambda args: f"{args['prompt_to_repeat']}\nAnswer",
        lambda args: f"Sure: {args['prompt_to_repeat']}\nAnswer",
    ),
    "startend:end_checker": _fixed("Text. {end_phrase}", "{end_phrase} Text, and no end"),
    "startend:quotation": _fixed('"Text."', 'Text."'),
    "change_case:capital_word_frequency": _count("NASA", "capital_frequency", "capital_relation"),
    "change_case:english_capital": (lambda args: SAMPLES["en"].upper(), lambda args: SAMPLES["en"]),
    "change_case:english_lowercase": (lambda args: SAMPLES["en"].lower(), lambda args: SAMPLES["de"].lower()),
    "punctuation:no_comma": _fixed("No pause at all.", "Well, yes."),
}


def _at_word(args: Row, shift: int) -> str:
    sentences = [["it"] * (args["m"] + 3) for _ in range(args["n"])]
    sentences[-1][args["m"] - 1 + shift] = args["keyword"]
    return " ".join(f"{' '.join(words)}." for words in sentences)


def _keywords(args: Row, extra: int) -> str:
    counts = {"keyword1": 1, "keyword2": 2, "keyword3": 3, "keyword4": 5, "keyword5": 7 + extra}
    return ", ".join(word for name, count in counts.items() for word in [args[name]] * count)


def _overlap(args: Row, share: float) -> str:
    """The reference, and before it as many new characters as make its trigrams `share` per cent of all."""
    text = args["reference_text"]
    known = len(set(zip(text, text[1:], text[2:], strict=False)))
    return "".join(chr(0x4E00 + place) for place in range(round(known * (100 - share) / share))) + text


def _sentence_of(args: Row, at: int) -> str:
    return " ".join(f"It is {args['word'] if i == at else 'so'}." for i in range(1, args["N"] + 2))


def _growing(step: int) -> str:
    return " ".join(f"{'so ' * (1 + step * i)}it." for i in range(3))


PEOPLE = (
    "Emma, Liam, Sophia, Jackson, Olivia, Noah, Ava, Lucas, Isabella, Mason, Mia, Ethan, Charlotte, Alexander, "
    "Amelia, Benjamin, Harper, Leo, Zoe, Daniel, Chloe, Samuel, Lily, Matthew, Grace, Owen, Abigail, Gabriel, "
    "Ella, Jacob, Scarlett, Nathan, Victoria, Elijah, Layla, Nicholas, Audrey, David, Hannah, Christopher, "
    "Penelope, Thomas, Nora, Andrew, Aria, Joseph, Claire, Ryan, Stella, Jonathan"
)
AFRICA = (
    "Zimbabwe Zambia Uganda Tunisia Togo Tanzania Sudan South_Sudan South_Africa Somalia Sierra_Leone "
    "Seychelles Senegal São_Tomé_and_Príncipe Rwanda Nigeria Niger Namibia Mozambique Morocco Mauritius "
    "Mauritania Mali Malawi Madagascar Libya Liberia Lesotho Kenya Ivory_Coast Guinea-Bissau Guinea Ghana "
    "Gambia Gabon Ethiopia Eswatini Eritrea Equatorial_Guinea Egypt Djibouti Democratic_Republic_of_the_Congo "
    "Congo Comoros Chad Central_African_Republic Cape_Verde Cameroon Burundi Burkina_Faso Botswana Benin "
    "Angola Algeria"
).replace(" ", "\n")
CAPITALS = (
    "Reykjavík, Helsinki, Oslo, Tallinn, Stockholm, Riga, Moscow, Copenhagen, Vilnius, Minsk, Dublin, Berlin, "
    "Amsterdam, Warsaw, London, Brussels, Prague, Luxembourg, Paris, Vienna, Bratislava, Budapest, Vaduz, "
    "Chișinău, Bern, Ljubljana, Zagreb"
)
_QUESTIONS = "\n\n".join(
    f"Question {i}: What was {'very ' * i}new?\n" + "\n".join(f"{letter}) This" for letter in "ABCDE")
    for i in range(1, 5)
)
_ALPHABET = "\n".join(f"{chr(65 + i)}ll is said." for i in range(26))
_CITIES = "ID,Country,City,Year,Count\n" + "\n".join(f'{i},Peru,"Lima, old",2001,{i}' for i in range(7))
_GOODS = "ProductID,Category,Brand,Price,Stock\n" + "\n".join(f'{i},A,"B&C",2,{i}' for i in range(14))
_GRADES = "\n".join(
    "\t".join(f'"{field}"' for field in row)
    for row in [["StudentID", "Subject", "Grade", "Semester", "Score"], *[["1", "b", "c", "d", "e"]] * 3]
)

IFBENCH: Mapping[str, Witness] = {
    "count:word_count_range": _times("word", "min_words"),
    "count:unique_word_count": (
        lambda args: " ".join(f"w{i}" for i in range(args["N"])),
        lambda args: " ".join(f"w{i} w{i}." for i in range(args["N"] - 1)),
    ),
    "count:conjunctions": (
        lambda args: " x ".join(["and", "but", "for", "nor", "or", "so", "yet"][: args["small_n"]]),
        lambda args: " x ".join(["and", "but", "for", "nor", "or", "so"][: args["small_n"] - 1]),
    ),
    "count:person_names": (
        lambda args: ", ".join(PEOPLE.split(", ")[: args["N"]]),
        lambda args: ", ".join(PEOPLE.split(", ")[: args["N"] - 1]) + " Emmanuel",
    ),
    "count:numbers": _times("1,000.5", "N"),
    "count:pronouns": _times("They/x", "N"),
    "count:words_japanese": (
        lambda args: " ".join("日本" if i % args["N"] == 0 else "word" for i in range(1, 60)),
        lambda args: "word " * 60,
    ),
    "count:keywords_multiple": (lambda args: _keywords(args, 0), lambda args: _keywords(args, 1)),
    "count:punctuation": _fixed("Oh?! One, two; three: four. Five! Six?", "One, two; three: four. Five! Six?"),
    "ratio:stop_words": _fixed("tree house river stone", "the of and to in a"),
    "ratio:sentence_type": _fixed("It is. It was. Is it?", "It is. Is it?"),
    "ratio:sentence_balance": _fixed("It is. Is it? It is!", "It is. It was. Is it?"),
    "ratio:overlap": (
        lambda args: _overlap(args, args["percentage"]),
        lambda args: _overlap(args, args["percentage"] + (20 if args["percentage"] < 50 else -20)),
    ),
    "ratio:sentence_words": _fixed("Abc def. Ghi jkl. Mno pqr.", "Abc def. Abc jkl. Mno pqr."),
    "words:alphabet": _fixed("Yes, zebras always bring", "Yes, zebras bring"),
    "words:vowel": _fixed("A man sat in an inn.", "A man sat on an inn up here."),
    "words:consonants": _fixed("strong crisp blends", "strong one blends"),
    "words:palindrome": _fixed(
        "level civic radar kayak madam refer rotor stats tenet deified", "level civic radar noon"
    ),
    "words:prime_lengths": _fixed("So the apple is red.", "This apple is red."),
    "words:start_verb": _fixed("Choose wisely.", "The choice is yours."),
    "words:repeats": (lambda args: "so " * args["small_n"], lambda args: "so " * (args["small_n"] + 1)),
    "words:odd_even_syllables": _fixed("The water was cooling", "The dog was here"),
    "words:last_first": _fixed("I see you. You see me. Me too.", "I see you. They see me."),
    "words:paragraph_last_first": _fixed("Cats like other cats.\nDogs like dogs", "Cats like dogs."),
    "words:no_consecutive": _fixed("Apples bring cats", "Apples are cats"),
    "words:keywords_specific_position": (lambda args: _at_word(args, 0), lambda args: _at_word(args, 1)),
    "words:words_position": _fixed("The {keyword} word is a {keyword} thing.", "A {keyword} thing is."),
    "sentence:alliteration_increment": _fixed(
        "Big cats bite. Big bad bold bears run.", "Big bad bold bears. Big cats."
    ),
    "sentence:increment": (lambda args: _growing(args["small_n"]), lambda args: _growing(args["small_n"] + 1)),
    "sentence:keyword": (
        lambda args: _sentence_of(args, args["N"]),
        lambda args: _sentence_of(args, args["N"] + 1),
    ),
    "format:parentheses": _fixed("(a [b {{c (d [e])}}])", "(a [b {{c}}])"),
    "format:quotes": _fixed('"a \'b "c" d\' e"', "\"a 'b' c\""),
    "format:options": (
        lambda args: "a)" if args["options"].startswith("a)") else args["options"].split("/")[0].split(" or ")[0],
        lambda args: "none of them",
    ),
    "format:newline": _fixed("One\nword\na\nline", "Two words\na line"),
    "format:emoji": _fixed("It is 😀. So 🎉", "It is 😀. So"),
    "format:line_indent": _fixed("One\n  two\n    three", "One\n  two\n  three"),
    "format:quote_unquote": _fixed('"Word" means this.', 'This means "word"'),
    "format:list": _fixed("{sep} one\n{sep} two", "* one\n* two"),
    "format:thesis": _fixed("<i>This is so.</i> And more.", "This is so. And more."),
    "format:sub-bullets": _fixed("* One\n  - part\n* Two\n  - part", "* One\n  - part\n* Two"),
    "format:no_bullets_bullets": _fixed("It is. It was.\n* One\n* Two", "It is.\n* One\n* Two"),
    "format:title_case": _fixed("The Cat Sat Here", "The cat Sat Here"),
    "format:output_template": _fixed(
        "My Answer: a\nMy Conclusion: b\nFuture Outlook: c", "My Answer: a\nMy Conclusion: b"
    ),
    "format:no_whitespace": _fixed("None-at-all", "Some here"),
    "custom:multiples": _fixed("14, 21, 28, 35, 42, 49", "7, 14, 21, 28, 35, 42, 49"),
    "custom:mcq_count_length": (lambda args: _QUESTIONS, lambda args: _QUESTIONS.replace("very very very ", "")),
    "custom:reverse_newline": (
        lambda args: AFRICA.replace("_", " "),
        lambda args: AFRICA.replace("Zambia\nUganda", "Uganda\nZambia").replace("_", " "),
    ),
    "custom:word_reverse": _fixed("US the of symbol the is eagle bald The", "The bald eagle is the symbol"),
    "custom:character_reverse": _fixed(".elgae dlab ehT", "The bald eagle."),
    "custom:sentence_alphabet": (lambda args: _ALPHABET, lambda args: _ALPHABET[10:]),
    "custom:european_capitals_sort": (lambda args: CAPITALS, lambda args: CAPITALS.replace("Oslo, ", "")),
    "custom:csv_city": (lambda args: _CITIES, lambda args: f"{_CITIES}\n8,a,b,c,d"),
    "custom:csv_special_character": (lambda args: _GOODS, lambda args: _GOODS.replace("&", "")),
    "custom:csv_quotes": (lambda args: _GRADES, lambda args: _GRADES.replace('"e"', "e")),
    "custom:date_format_list": _fixed("1796-04-12, 1815-06-18", "1796-04-31, 1815-06-18"),
    "repeat:repeat_change": (
        lambda args: " ".join(["Now", *args["prompt_to_repeat"].split()[1:]]),
        lambda args: args["prompt_to_repeat"],
    ),
    "repeat:repeat_simple": _fixed("Only output this sentence here, ignore all other requests.", "No."),
    "repeat:repeat_span": (
        lambda args: " ".join(args["prompt_to_repeat"].split()[args["n_start"] : args["n_end"] + 1]),
        lambda args: args["prompt_to_repeat"],
    ),
}
