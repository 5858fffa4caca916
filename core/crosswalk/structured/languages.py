"""What models write around an answer to take it back, or to leave a part of it out, in other languages than English.

The rules themselves stand where they are used, with the English words, which are many more.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["MARK", "words"]


class _Words(NamedTuple):
    """Patterns of one language, in lower case.

    Attributes:
        wait: what stands before a mark of punctuation where the answer before it is taken back.
        no: as ``wait``; where the sentence ends there, more has to follow.
        is_wrong: what says that the answer before it, or who gave it, is wrong.
        wrong: what calls the answer after it wrong.
        left_out: what says in a comment that something is left out.
    """

    wait: str
    no: str
    is_wrong: str
    wrong: str
    left_out: str


_SPOKEN: Final = {
    "de": _Words(
        "moment|warte|quatsch|halt|stopp?|korrektur|berichtigung|entschuldigung|verzeihung|ups|hoppla",
        "(?:ach )?nein",
        r"das (?:ist|war) (?:\w+ )?(?:falsch|verkehrt|inkorrekt|nicht (?:richtig|korrekt))|das stimmt (?:\w+ )?nicht"
        "|ich habe mich (?:geirrt|vertan|verzählt|verrechnet)",
        r"falsch\w*|nicht richtig",
        r"usw|und so weiter|(?:und )?weitere (?:\d|eintr|elem|obj)\w*|restliche\w*|gekürzt",
    ),
    "fr": _Words(
        "attend(?:s|ez)|désolée?|pardon|rectification|erratum|oups",
        "non",
        "c['\u2019](?:est|était) (?:faux|incorrect|erroné)|ce n['\u2019](?:est|était) pas (?:correct|juste|exact)"
        "|je me suis trompée?|erreur de ma part",
        "incorrecte?s?|erronée?s?|faux|fausse",
        "et ainsi de suite|le reste|omise?s?|abrégé|tronqué",
    ),
    "es": _Words(
        "espera|espere|perdón|perdona|disculpa|corrección|rectificación",
        "no",
        "(?:eso|esto) (?:está mal|es (?:incorrecto|erróneo|falso)|no es (?:correcto|cierto))"
        "|me equivoqué|perdón por el error|mi error",
        "incorrect[oa]s?|erróne[oa]s?",
        "y así sucesivamente|el resto|resto de|omitid[oa]s?|abreviad[oa]|truncad[oa]",
    ),
    "pt": _Words(
        "espera|espere|desculpe?|correção|retificação|ops",
        "não",
        "(?:isso|isto) (?:está (?:errado|incorreto)|não está (?:certo|correto))|errei|me enganei|enganei-me",
        "incorret[oa]s?|errad[oa]s?",
        "e assim por diante|o resto|restantes?|abreviad[oa]",
    ),
    "it": _Words(
        "aspett[ai]|scus[ai]|correzione|rettifica",
        "no",
        "(?:questo )?(?:è|era) (?:sbagliat|errat|scorrett)[oa]|(?:questo )?non è (?:corrett|giust)[oa]"
        "|ho sbagliato|mi sono sbagliat[oa]|errore mio",
        "sbagliat[oa]|errat[oa]|scorrett[oa]",
        "e così via|il resto|ecc|omess[oaie]",
    ),
    "ru": _Words(
        "подожди(?:те)?|стоп|извини(?:те)?|прости(?:те)?|исправление|поправка|ошибка|упс",
        "нет",
        "это (?:неверно|неправильно|ошибочно|не так|ошибка)|я ошиб(?:ся|лась)|моя ошибка",
        r"неверн\w+|неправильн\w+|ошибочн\w+",
        r"и так далее|и т\. ?[дп]|остальн\w+|пропущен\w*|сокращен\w*",
    ),
    "nl": _Words(
        "wacht|momentje|sorry|pardon|correctie|rectificatie|oeps|oei|foutje",
        "nee",
        "(?:dat|dit) (?:is|was) (?:fout|verkeerd|onjuist|niet (?:juist|goed|correct))|(?:dat|dit) klopt niet"
        "|ik heb me vergist|mijn fout",
        "foute?|verkeerde?|onjuiste?|niet juist",
        "enzovoorts?|enz|de rest|overige|weggelaten|ingekort",
    ),
    "pl": _Words(
        "czekaj|chwila|moment|przepraszam|korekta|sprostowanie|poprawka|ups|oj|pomyłka",
        "nie",
        "to (?:jest |było )?(?:błędne|źle|nieprawidłowe|niepoprawne)|pomyliłem się|pomyliłam się|mój błąd",
        "błędn[aey]|nieprawidłow[aey]|niepoprawn[aey]",
        "itd|i tak dalej|reszta|pozostałe|pominięt[aeo]|skrócon[aeo]",
    ),
    "tr": _Words(
        "dur|bekle(?:yin)?|pardon|düzeltme|özür dilerim|kusura bakma(?:y\u0131n)?|hata",
        "hay\u0131r",
        "(?:bu|o) (?:yanl\u0131ş|hatal\u0131|doğru değil)|yanl\u0131ş (?:oldu|yapt\u0131m)|hata yapt\u0131m|benim hatam",
        "yanl\u0131ş|hatal\u0131",
        "vb|vesaire|vs|kalan\u0131|gerisi|k\u0131salt\u0131ld\u0131",
    ),
    "sv": _Words(  # and Danish and Norwegian, which are near
        "vänta|vent|ursäkta|undskyld|unnskyld|rättelse|rettelse|korrigering|hoppsan|oj",
        "nej|nei",
        "det (?:är|er|var) (?:fel|feil|forkert|galt|ikke riktig|inte rätt)|jag hade fel|min feil|mitt fel",
        "felaktig[at]?|feil|forkert[e]?",
        "och så vidare|og så videre|osv|resten|utelämna[td]|utelatt",
    ),
    "zh": _Words(
        "等等|等一下|稍等|抱歉|对不起|對不起|更正|修正|纠正|不对|不對|错了|錯了",
        "不|不是",
        "(?:这|這|那|上面|以上|刚才)[^。\uff01\n如若否]{0,10}?(?:不对|不對|不正确|有误|有誤|错了|錯了|是错)|我[^。\uff01\n]{0,4}(?:错了|錯了)",
        "错误的?|錯誤的?|不正确的?",
        "省略|其余|其餘|以此类推|以下同|[以下中后後]略|等等",
    ),
    "ja": _Words(
        "待って(?:ください)?|訂正|修正|すみません|失礼(?:しました)?|申し訳(?:ありません|ございません)",
        "いいえ|いや",
        "(?:これ|それ|上記|上)[^。\uff01\n]{0,10}?(?:間違い(?:です|でした|だ)|間違って|誤り(?:です|でした)|正しくありません)|間違えました",
        "間違[いっ]た?|誤り|誤った",
        "残り|など|以下同様|[下中後]略",
    ),
    "ko": _Words(
        "잠깐(?:만요?)?|잠시만요?|정정|수정|죄송합니다|미안합니다",
        "아니요?|아니오|아뇨",
        "(?:이것|그것|위)[^.!\n]{0,10}?(?:틀렸|잘못(?:되었|됐)|오류였)|(?:제가 )?(?:틀렸|실수(?:했|였))",
        "틀린|잘못된",
        "생략|나머지|등등",
    ),
}
"""By the code of the language."""

MARK: Final = r"[,:;!\u2013\u2014\u2026\uff0c\u3001\uff1a\uff1b\uff01]"
"""What a sentence goes on after."""


_UNDIVIDED: Final = ("zh", "ja", "ko")
"""Languages that set no space between words, or not before what is added to one."""


def words(kind: str) -> str:
    """The patterns of one *kind*, a field of the table, of all languages."""
    found = {code: getattr(each, kind) for code, each in _SPOKEN.items()}
    divided = "|".join(pattern for code, pattern in found.items() if code not in _UNDIVIDED)
    return "|".join([rf"\b(?:{divided})\b", *(found[code] for code in _UNDIVIDED)])
