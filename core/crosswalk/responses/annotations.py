"""Annotations of a text part: the sources that it cites and the files that it mentions."""

from typing import ClassVar, Literal, TypeAlias

from crosswalk.responses.records import Record, Unknown, record
from crosswalk.types.json import FrozenObject


@record
class AnnotationFileCitation(Record):
    """A citation of a file. Two citations of the same place in the same file are equal.

    Attributes:
        file_id: the file's id.
        filename: the file's name.
        index: the position of the citation in the text, in characters. Some models send the file's position in the list
            of files. Not compared.
        page_number: the cited page. OpenAI sends none.
        document_position: the cited position in the document. OpenAI sends none.
    """

    type: Literal["file_citation"] = "file_citation"
    file_id: str
    filename: str | None = None
    index: int | None = None
    page_number: int | None = None
    document_position: int | None = None

    @property
    def source(self) -> tuple[str, int | None, int | None]:
        """The cited place, as a key."""
        return self.file_id, self.page_number, self.document_position

    def __eq__(self, other: object) -> bool:
        return self.source == other.source if isinstance(other, AnnotationFileCitation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.source)


@record
class AnnotationURLCitation(Record):
    """A citation of a web page. Two citations of the same URL are equal.

    Attributes:
        url: the page.
        title: its title.
        start_index: the first character of the text that relies on it.
        end_index: the character after the last one.
        metadata: more about the page. OpenAI sends none. Not compared.
    """

    type: Literal["url_citation"] = "url_citation"
    url: str
    title: str | None = None
    start_index: int | None = None
    end_index: int | None = None
    metadata: FrozenObject | None = None

    @property
    def source(self) -> str:
        """The cited place, as a key."""
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
        index: its position in the list of files.
    """

    type: Literal["file_path"] = "file_path"
    file_id: str
    index: int | None = None


@record
class UnknownAnnotation(Unknown, Record):
    """An annotation of an unregistered type."""

    family: ClassVar[str] = "annotation"
    type: str | None = None


Annotation: TypeAlias = (
    AnnotationFileCitation
    | AnnotationURLCitation
    | AnnotationContainerFileCitation
    | AnnotationFilePath
    | UnknownAnnotation
)
"""The members of ``annotations`` of an output text."""
