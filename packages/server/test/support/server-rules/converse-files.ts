/**
 * What Bedrock refuses of images and documents: https://docs.aws.amazon.com/bedrock/latest/userguide/inference-api-restrictions.html and
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html
 */
import { imageDimensionsFromData } from 'image-dimensions';

type Fields = Record<string, unknown>;

const MB = 1_000_000;

export function converseFilesRefusal(messages: readonly { content: Fields[] }[], model: string): string | undefined {
  const blocks = messages.flatMap(({ content }) =>
    content.flatMap((block) => [block, ...((block.toolResult as { content?: Fields[] } | undefined)?.content ?? [])]),
  );
  const documents = blocks.flatMap(({ document }) => (document ? [document as Fields] : []));
  const images = blocks.flatMap(({ image }) => (image ? [bytesOf(image as Fields)] : []));
  if (documents.length > 5) return "You can't include more than 5 documents in a request.";
  if (new Set(documents.map(({ name }) => name)).size < documents.length)
    return "Messages can't contain duplicate document names.";
  if (images.length + documents.length > 20)
    return `The model returned the following errors: messages: too many images and documents: ${images.length} + ${documents.length} > 20`;
  const isLimited = !/claude-(?![23])|nova/.test(model);
  if (isLimited && documents.some((document) => bytesOf(document).length > 4.5 * MB))
    return 'The document file size exceeds 4.5 MB.';
  if (images.some((image) => image.length > 3.75 * MB))
    return 'The model returned the following errors: image exceeds 5 MB maximum';
  const sides = images.flatMap((image) => Object.values(imageDimensionsFromData(image) ?? {}));
  if (sides.some((side) => Number(side) > 8000))
    return 'The model returned the following errors: At least one of the image dimensions exceed max allowed size: 8000 pixels';
  return undefined;
}

function bytesOf({ source }: Fields): Buffer {
  return Buffer.from(String((source as Fields).bytes), 'base64');
}
