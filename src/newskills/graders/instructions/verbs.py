# SPDX-License-Identifier: Apache-2.0
"""English verbs in all their forms: whether a text begins with one.

A word that is a noun as often (`water`, `time`) is not listed: without its sentence it cannot be told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from newskills.graders.instructions.texts import treebank_tokens

_BASE = """abandon abate abide abort abound absorb accelerate accept accommodate accomplish accumulate
    achieve acknowledge activate adapt add adhere adjudicate adjust admire admit adopt advise affect affirm
    afford agree aim align alleviate allocate allow alter amend amplify amuse analyze announce annoy answer
    anticipate apologize appear appease append applaud apply appoint appreciate approve argue arise arrange
    arrive ask assassinate assemble assert assess assign assimilate assist assume assure attach attend attract
    attribute augment authenticate authorize automate avert avoid await awaken back backfire baffle bail balance
    bear beat beautify become beg begin behave behold believe belong bend bite blame bleed bless blink blossom
    blunt boil bolster boo boost borrow bother bounce break breathe bring browse buckle build bump burn buy bye
    bypass calculate call cancel capitalize capture care carry carve catch categorize cater cease celebrate
    change characterize cheat check cherish chew choke choose chop churn cipher cite civilize claim clamor clamp
    clarify classify clean clench cling close coalesce coddle coerce collaborate collect combine come comment
    commercialize commit communicate commute compare compel compensate compete compile complain complicate
    comply compose comprehend compress compute concentrate conclude confess confide confirm confiscate conform
    confront confuse connect conquer consider consist console consolidate conspire constitute constrain
    construct construe consult consume contain contemplate continue contradict contribute contrive control
    convene converge converse convert convey convince cook cooperate coordinate cope correspond cost count
    counterbalance cover crank create creep cringe crisscross criticize cross crumble crystallize cultivate curl
    cut damp dance dangle dare dazzle debug deceive decide decipher declare decode decompose decorate deduce
    deduct deem deepen defend defer define deflect defy degrade delete deliver delve demand demolish demonstrate
    denote deny depart depend depict deploy derive describe deserve design designate desist destabilize destroy
    detach detect deter determine detest detonate develop devise devote devour diagnose dictate die differ
    differentiate dig digest dilate dilute diminish dine disable disallow disappear disarm discard discern
    disclose disconnect discourage discover discriminate discuss disembark disengage disguise dislodge dismiss
    dispel dispose disrupt dissipate dissolve distinguish distract distribute diverge divest divide dodge
    dominate don downplay drain draw dream dress drink drive drop drum dump duplicate dwell earn ease eat
    eclipse edit educate elaborate elevate elicit eliminate elongate embark embarrass embody embrace emerge emit
    empathize emphasize employ empower enable encapsulate enchant encourage endure enforce engage enhance enjoy
    enlighten enrich ensue ensure enter entertain equate erase erode err escalate escape establish evacuate
    evade evaluate evaporate evoke evolve examine exceed excel exclude execute exert exist expand expect
    expedite expel explain explode exploit explore expose express extend extract extricate face facilitate fade
    fail falsify familiarize fathom fear feel fend fetch fight file fill find finish fit fix flatten flatter
    float flourish fly focus fold follow force foreclose forge forget form forsake foster frown fulfill funnel
    gather generalize generate get give glean glide go govern grab grapple grasp grind grow guess guide hamper
    handle hang happen harvest hast hate heal hear heat hedge heed help herald hesitate hibernate hide highlight
    hinder hire hold hope hover humanize hunt hurl hustle identify ignite ignore illuminate illustrate imagine
    impart imperil implement imply impose impress imprint imprison improve improvise include incorporate
    incubate indicate infer influence inform infuse ingest inhabit inherit initiate inject innovate inquire
    insert insist inspect inspire install instruct insure integrate intend intensify interact interfere
    interject intermingle interpret interrupt intersect intervene introduce invalidate invent invert invest
    investigate invite invoke involve isolate join jump justify keep kick kill kindle knead knock knot know
    label land last laugh launch lead learn leave lend let level liberate lie lift limit linger link list listen
    live load localize locate lock log look loosen lose love lure lurk maintain make manage manipulate
    manufacture map mark marvel match maximize mean measure mediate meet meld melt mend mention merge migrate
    mimic mince mingle minimize miss mitigate mix moan model modernize modify monitor mop mount mourn move mow
    multiply muster mutate mutter nab name navigate need negate negotiate neutralize nibble normalize note
    notify nudge nurture obey obfuscate obliterate observe obtain occupy occur offer offset omit open operate
    opt optimize organize outperform outweigh overcome overheat overlook override oversee overshadow overturn
    overwhelm own pack paint pardon park parry participate pass pause pave pay peel penalize perceive perform
    permit perpetuate persist personalize persuade pick pierce pinpoint place plan plant play plead please pluck
    point polish ponder pontificate populate portray pose possess post postpone pour practice pray preclude
    predict prefer preheat prepare prescribe preserve press pretend prevent print proceed process proclaim prod
    produce profess promise promote prompt pronounce prop propagate propose protect protrude prove provide
    publish pull pump punish purify pursue push put quadruple qualify quantify quell question quit quote radiate
    raise ram rant rate rationalize rave reach react read realize rearrange reason reassemble reassign rebalance
    rebuild rebut recall recast receive recite reckon reclaim recognize recommend reconcile reconnect reconsider
    reconstitute reconstruct record recount recover recreate rectify recur recycle redefine redirect reduce
    reexamine refactor refer refine reflect refrain refresh refuse refute regain regenerate register regress
    regret regroup regulate rehabilitate reinforce reinstall reinterpret reintroduce reinvent reiterate reject
    relate relax relay release rely remain remake remember remind remove rename render renegotiate reorder
    repeat rephrase replace replicate reply report reposition represent reproduce request require reschedule
    research resent reshape resist resolve resonate respond rest restart restate restore restrict restructure
    resubmit resume retain rethink retire retrace retrain retrieve retry return reuse reveal revel reverse
    revert review revise revisit revitalize revive revoke revolutionize reward rewrite ride ring rinse rip roam
    roast roll rotate rove rub rule run safeguard sail salvage sample sanitize sap satisfy saturate save savor
    say scan scare schedule score scowl scream scribble scrub scrutinize seal search seat secure seduce see seek
    seem seize select sell send serve set settle shake shape share sharpen shatter shed shift ship shoot shop
    shorten shout show shrink shroud shrug sidestep sift sign simmer simplify simulate sing sink siphon sit
    sketch skew skip slash sleep slice slip smolder smuggle snap snare sneak sniff snort soak soar sob soften
    solve sort sound sow spark spawn speak specialize specify speculate spell spend spin spit spoil spot spread
    sprinkle spur stabilize stand stare start stash state stave stay steal stem step stick stifle stir stock
    stop store straddle strap stratify streamline strengthen stress stretch strive struggle study stumble submit
    subscribe subtract succeed succumb sue suffer suffice suggest summarize summon supersede supply support
    suppose suppress surprise surround survive suspect sustain swab sway swear swell swim swing switch symbolize
    synthesize tackle tailor take talk tap taper target taste teach tear tease tell tend terminate test thank
    thicken think threaten thrive throw tick tint torpedo toss touch tout trace track trade train trample
    transcend transform translate transmit travel traverse tread treat tremble trigger trim trivialize trust try
    tuck turn uncover underestimate undergo underline undermine underperform underpin underscore understand undo
    unfold unite unleash unload unlock unplug unravel unwind update upgrade uphold urge use utilize validate
    value vanish vary verify view visit visualize volunteer vote wade wait waive walk wander want warn wash
    watch wave waver wear weave weep weigh welcome whack whisk whoosh widen wield win wish withdraw withstand wobble
    wonder work worry worsen wrap wrestle write yield zoom"""
_OTHER_FORMS = """am are arisen arose awoke be beaten became become been began begun being bent bitten bled blew
    blown bore born borne bought bound bred broke broken brought built burnt came caught chose chosen clung
    crept dealt did do does done drank drawn dreamt drew driven drove drunk dug eaten fallen fed fell felt flew
    flown forbade forbidden forgave forgiven forgot forgotten fought found froze frozen gave given gone got
    gotten grew ground grown had has have heard held hid hidden hung is kept knelt knew known laid lain lay led
    left lent lit lost made meant met overcame paid ran rang ridden risen rode rose rung said sang sank sat saw
    seen sent shaken shone shook shot shown shrank slept slid sold sought spent spoke spoken sprang spun stole
    stolen stood stuck stung sung sunk swam swept swore sworn swum swung taken taught thought threw thrown told
    took tore torn undergone understood undertook upheld was went were woke woken won wore worn wove woven
    written wrote"""
_DOUBLED = re.compile(r"[^aeiou]?[^aeiou][aeiou][bdgklmnprt]$")
_HISS = ("s", "x", "z", "ch", "sh", "o")
_BEGINNING = 400


def starts_with_verb(text: str) -> bool:
    """Return whether the first token is a verb: imperative, participle, gerund, or a finite form; no modals."""
    first = treebank_tokens(text[:_BEGINNING])[:1]
    return bool(first) and first[0].lower() in _FORMS


def _verb_forms(verb: str) -> Iterator[str]:
    yield verb
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")):
        stem = verb[:-1]
    else:
        stem = verb
    if verb.endswith("y") and verb[-2] not in "aeiou":
        yield from (f"{verb[:-1]}ies", f"{verb[:-1]}ied", f"{verb}ing")
        return
    if verb.endswith(_HISS):
        yield f"{verb}es"
    else:
        yield f"{verb}s"
    yield from (f"{stem}ed", f"{stem}ing")
    if verb.endswith("ie"):
        yield f"{verb[:-2]}ying"
    if _DOUBLED.search(verb):
        yield from (f"{verb}{verb[-1]}ed", f"{verb}{verb[-1]}ing")


_FORMS = frozenset(form for verb in _BASE.split() for form in _verb_forms(verb)) | frozenset(_OTHER_FORMS.split())
