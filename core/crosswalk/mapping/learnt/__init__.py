"""What is learnt of events and of whole bodies, so that their like need not be taken apart by hooks.

Of the events of a stream: a *template* says what one kind of event is (:mod:`.template`), :mod:`.learning` makes one of an
event that was mapped: :mod:`.finding` says where in it what may change stands, :mod:`.asking` what the hooks make of other
values, :mod:`.parts` is for counts and log probabilities, :mod:`.kept` for what the extensions keep; :mod:`.pattern` finds
it again in the next answer. The code that reads such events is written by :mod:`.event_code`, where the proof stands,
:mod:`.run_code` for many at once, and :mod:`.merge_code` for the extensions; :mod:`.templates` has those of one answer.
Of whole bodies: :mod:`.shape`, :mod:`.holes`, :mod:`.shape_code`.
What both find with marks: :mod:`.marks`.

Of bodies, counts and log probabilities the hooks are asked what they make of other values. Of a text, a stamp or the number
of an event is proven only *where* they stand; that the hooks make the same of another is the plugin's promise, which the
conformance kit tests.

All of it is off, and everything takes the general path, while ``crosswalk.learning.learning.is_on`` is false, and wherever a
plugin promises nothing or a hook of its is overridden or wrapped (``Mapper.is_plain``).
"""
