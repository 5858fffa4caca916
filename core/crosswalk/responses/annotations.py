"""What a text part says about itself: the sources it cites and the files it mentions."""

from typing import ClassVar, Literal, TypeAlias

from crosswalk.responses.records import Record, Unknown, record
from crosswalk.types.json import FrozenObject

__all__ = [
    "Annotation",
    "AnnotationContainerFileCitation",
    "AnnotationFileCitation",
    "AnnotationFilePath",
    "AnnotationURLCitation",
    "UnknownAnnotation",
]


@record
class AnnotationFileCitation(Record):
    """A citation of a file, equal to another of the same place in the same file wherever the two stand.

    Attributes:
        file_id: the file.
        filename: its name.
        index: where in the text the citation stands, in characters; or its place in the list of files, by some
            models. Not part of what is cited.
        page_number: the page that is cited; OpenAI sends none.
        document_position: the place in the document that is cited; OpenAI sends none.
    """

    type: Literal["file_citation"] = "file_citation"
    file_id: str
    filename: str | None = None
    index: int | None = None
    page_number: int | None = None
    document_position: int | None = None

    @property
    def source(self) -> tuple[str, int | None, int | None]:
        """What is cited."""
        return self.file_id, self.page_number, self.document_position

    def __eq__(self, other: object) -> bool:
        return self.source == other.source if isinstance(other, AnnotationFileCitation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.source)


@record
class AnnotationURLCitation(Record):
    """A citation of a page on the web, equal to another of the same URL wherever the two stand.

    Attributes:
        url: the page.
        title: its title.
        start_index: the first character of the text that rests on it.
        end_index: the character after the last one.
        metadata: what else is known of the page; OpenAI sends none. Not part of what is cited.
    """

    type: Literal["url_citation"] = "url_citation"
    url: str
    title: str | None = None
    start_index: int | None = None
    end_index: int | None = None
    metadata: FrozenObject | None = None

    @property
    def source(self) -> str:
        """What is cited."""
        return self.url

    def __eq__(self, other: object) -> bool:
        return self.source == other.source if isinstance(other, AnnotationURLCitation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.source)


@record
class AnnotationContainerFileCitation(Record):
    """A file that the code interpreter wrote into its container.

    Attributes:
        container_id: the container.
        file_id: the file.
        filename: its name.
        start_index: the first character of the text that mentions it.
        end_index: the character after the last one.
    """

    type: Literal["container_file_citation"] = "container_file_citation"
    container_id: str
    file_id: str
    filename: str | None = None
    start_index: int | None = None
    end_index: int | None = None


@record
class AnnotationFilePath(Record):
    """A file that the text gives as its result.

    Attributes:
        file_id: the file.
        index: its place in the list of files.
    """

    type: Literal["file_path"] = "file_path"
    file_id: str
    index: int | None = None


@record
class UnknownAnnotation(Unknown, Record):
    """An annotation of a type that nobody registered."""

    family: ClassVar[str] = "annotation"
    type: str | None = None


Annotation: TypeAlias = (
    AnnotationFileCitation
    | AnnotationURLCitation
    | AnnotationContainerFileCitation
    | AnnotationFilePath
    | UnknownAnnotation
)
"""What may stand in ``annotations`` of an output text."""
