export { describeJsonRpcError, encodeJsonRpcError } from './json-rpc-error.js';
export type { JsonRpcErrorInput } from './json-rpc-error.js';
export { MAX_CALL_DEPTH, readJsonRpcRequest } from './json-rpc-request.js';
export type { JsonRpcRequest } from './json-rpc-request.js';
export { isStreamingMethod, methodLabel } from './methods.js';
export { readProtocolVersion } from './protocol-version.js';
export type { ProtocolVersion } from './protocol-version.js';
